//! The rows of a sequence where nobody asks for gradients: one row at a step where all items share it.
//!
//! An attack asks about a thousand texts that differ in one place. What they share is computed, kept and read once;
//! a row of a product has the same bits whatever the other rows are.

use crate::autodiff::{Shape, Tape, Var};
use crate::layers::alike::rows_equal;
use crate::numeric::Real;

/// (time, batch, dim), with one row instead of `batch` at the steps where all are the same.
pub struct Steps<T> {
    rows: Vec<T>,
    /// Where the rows of each step begin, and the end.
    at: Vec<usize>,
    batch: usize,
    dim: usize,
}

impl<T: Real> Steps<T> {
    /// Room for rows, shared by all items at these steps, with whatever the memory held before.
    pub fn room(tape: &mut Tape<T>, dim: usize, batch: usize, shared: &[bool]) -> Self {
        let (mut at, mut end) = (vec![0], 0);
        for shared in shared {
            end += dim * if *shared { 1 } else { batch };
            at.push(end);
        }
        let rows = tape.dirty(end);
        Steps {
            rows,
            at,
            batch,
            dim,
        }
    }

    /// The rows of a value; compares the bits of the items.
    pub fn of(tape: &mut Tape<T>, x: Var) -> Self {
        let Shape { batch, dim, .. } = tape.shape(x);
        let step = (batch * dim).max(1);
        let steps = tape.get(x).chunks_exact(step);
        let shared: Vec<bool> = steps.map(|step| rows_equal(step, dim)).collect();
        let mut distinct = Steps::room(tape, dim, batch, &shared);
        for (t, from) in tape.get(x).chunks_exact(step).enumerate() {
            let to = distinct.step_mut(t);
            to.copy_from_slice(&from[..to.len()]);
        }
        distinct
    }

    /// Rows of several values one after the other, as one value.
    pub fn join(tape: &mut Tape<T>, parts: &[Steps<T>]) -> Self {
        let (batch, time) = (parts[0].batch, parts[0].time());
        let dim = parts.iter().map(|part| part.dim).sum();
        let shared: Vec<bool> = (0..time)
            .map(|t| parts.iter().all(|part| part.is_shared(t)))
            .collect();
        let mut joined = Steps::room(tape, dim, batch, &shared);
        for t in 0..time {
            Steps::join_step(parts, t, joined.step_mut(t));
        }
        joined
    }

    /// The rows of step `t` of several values, one after the other; one row if `to` is one row long.
    pub fn join_step(parts: &[Steps<T>], t: usize, to: &mut [T]) {
        let dim = parts.iter().map(|part| part.dim).sum();
        for (item, to) in to.chunks_exact_mut(dim).enumerate() {
            let mut from = 0;
            for part in parts {
                to[from..from + part.dim].copy_from_slice(part.row(t, item));
                from += part.dim;
            }
        }
    }

    /// The same steps with `dim` numbers in a row.
    pub fn like(&self, tape: &mut Tape<T>, dim: usize) -> Self {
        let shared: Vec<bool> = (0..self.time()).map(|t| self.is_shared(t)).collect();
        Steps::room(tape, dim, self.batch, &shared)
    }

    /// Gives the memory back.
    pub fn recycle(self, tape: &mut Tape<T>) {
        tape.recycle(self.rows);
    }

    /// Steps.
    pub fn time(&self) -> usize {
        self.at.len() - 1
    }

    /// Items.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows of all steps, one after the other.
    pub fn all(&self) -> &[T] {
        &self.rows
    }

    /// The same, to write.
    pub fn all_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }

    /// Whether one row stands for all items.
    pub fn is_shared(&self, t: usize) -> bool {
        self.at[t + 1] - self.at[t] == self.dim
    }

    /// Numbers between the rows of two items: 0 where they share one.
    pub fn stride(&self, t: usize) -> usize {
        if self.is_shared(t) { 0 } else { self.dim }
    }

    /// The rows of a step.
    pub fn step(&self, t: usize) -> &[T] {
        &self.rows[self.at[t]..self.at[t + 1]]
    }

    /// The same, to write.
    pub fn step_mut(&mut self, t: usize) -> &mut [T] {
        &mut self.rows[self.at[t]..self.at[t + 1]]
    }

    /// The row of an item.
    pub fn row(&self, t: usize, item: usize) -> &[T] {
        &self.rows[self.at[t] + item * self.stride(t)..][..self.dim]
    }

    /// One step to read and another to write.
    pub fn pair(&mut self, read: usize, write: usize) -> (&[T], &mut [T]) {
        let (read, write) = (
            self.at[read]..self.at[read + 1],
            self.at[write]..self.at[write + 1],
        );
        if read.start < write.start {
            let (left, right) = self.rows.split_at_mut(write.start);
            (&left[read], &mut right[..write.len()])
        } else {
            let (left, right) = self.rows.split_at_mut(read.start);
            (&right[..read.len()], &mut left[write])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_steps_keep_one_row() {
        let (shape, mut tape) = (Shape::new(3, 2, 2), Tape::<f32>::default());
        // Zeros of two signs are two rows: nothing must be said of bits that were not compared.
        let data = [1., 2., 1., 2., 3., 4., 5., 6., 0., 7., -0., 7.];
        let x = tape.input(shape, &data);
        let steps = Steps::of(&mut tape, x);
        let shared: Vec<bool> = (0..3).map(|t| steps.is_shared(t)).collect();
        assert_eq!(shared, [true, false, false]);
        assert_eq!(steps.all(), &data[2..]);
        assert_eq!(
            (steps.row(0, 1), steps.row(1, 1)),
            (&data[2..4], &data[6..8])
        );
        let joined = Steps::join(&mut tape, &[steps.like(&mut Tape::default(), 0), steps]);
        assert_eq!(
            (joined.step(0), joined.row(2, 1)),
            (&data[..2], &data[10..])
        );
    }

    #[test]
    fn a_step_is_read_while_another_is_written() {
        let mut steps = Steps::<f32>::room(&mut Tape::default(), 1, 2, &[true, false, true]);
        steps.all_mut().copy_from_slice(&[1., 2., 3., 4.]);
        let (read, write) = steps.pair(0, 1);
        assert_eq!((read, &*write), (&[1.][..], &[2., 3.][..]));
        let (read, write) = steps.pair(2, 1);
        assert_eq!((read, &*write), (&[4.][..], &[2., 3.][..]));
    }
}
