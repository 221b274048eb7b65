//! The rows of a source item by item: at every step of the decoder each item reads its own from end to end, and rows
//! that follow each other are fetched ahead of being read.

use crate::autodiff::{Shape, Tape, Var};
use crate::layers::slices::turn;
use crate::numeric::Real;

/// Rows of a value, which is (source, batch, dim), or of its copy that is (batch, source, dim).
#[derive(Clone, Copy)]
pub(super) struct ByItem<'a, T> {
    pub data: &'a [T],
    /// Numbers between the rows of two items, and between two of an item.
    item: usize,
    next: usize,
    dim: usize,
}

impl<T> ByItem<'_, T> {
    /// Row `k` of item `b`.
    #[inline(always)]
    pub fn row(&self, b: usize, k: usize) -> &[T] {
        &self.data[b * self.item + k * self.next..][..self.dim]
    }
}

/// A copy of `v` item by item for a decoder of `time` steps, empty where they are too few to pay for it.
pub(super) fn copy<T: Real>(tape: &mut Tape<T>, v: Var, time: usize) -> Vec<T> {
    if time < 4 {
        return Vec::new();
    }
    let shape = tape.shape(v);
    let mut to = tape.dirty(shape.len());
    turn(tape.get(v), shape.batch, shape.dim, &mut to);
    to
}

/// The rows of `v`, with what [`copy`] made of it.
pub(super) fn rows<'a, T: Real>(tape: &'a Tape<T>, v: Var, copy: &'a [T]) -> ByItem<'a, T> {
    let Shape { time, batch, dim } = tape.shape(v);
    let (data, item, next) = if copy.is_empty() {
        (tape.get(v), dim, batch * dim)
    } else {
        (copy, time * dim, dim)
    };
    ByItem {
        data,
        item,
        next,
        dim,
    }
}
