//! Segment vectors: `y[t, b] = x[t, b] + S[s(t, b)]`, where `s(t, b)` is 0 up to the separator of item `b`,
//! separator included, and 1 behind it. Backward adds `dy[t, b]` to row `s(t, b)` of `dS`.
//!
//! `x`, `y` are (time, batch, dim), `S` (2, dim). Without them, a model that reads two texts as one sequence
//! knows only from the separator where the second begins.

use crate::autodiff::{Params, Span, Tape, Var};
use crate::layers::slices::add;
use crate::numeric::Real;

/// The segment of each step of each item, (time, batch): 1 behind the first `separator` of the item.
pub fn segment_ids(ids: &[u32], batch: usize, separator: u32) -> Vec<usize> {
    let mut behind = vec![0; batch];
    let mut segments = Vec::with_capacity(ids.len());
    for (n, id) in ids.iter().enumerate() {
        let item = n % batch.max(1);
        segments.push(behind[item]);
        if *id == separator {
            behind[item] = 1;
        }
    }
    segments
}

/// Adds row `segments[t, b]` of a table to step `t` of item `b`.
pub fn segments<T: Real>(
    tape: &mut Tape<T>,
    params: &Params<T>,
    x: Var,
    table: Span,
    segments: Vec<usize>,
) -> Var {
    let shape = tape.shape(x);
    let y = tape.output(shape, &[x], true);
    let mut out = tape.take(y);
    let vectors = params.get(table);
    let steps = out.chunks_exact_mut(shape.dim);
    let steps = steps.zip(tape.get(x).chunks_exact(shape.dim));
    for ((y, x), segment) in steps.zip(&segments) {
        let vector = &vectors[segment * shape.dim..][..shape.dim];
        for ((y, x), v) in y.iter_mut().zip(x).zip(vector) {
            *y = *x + *v;
        }
    }
    tape.put(y, out);
    tape.record_output(y, move |tape, _, grads, dy| {
        if grads.wants(table) {
            let to = grads.get(table);
            for (dy, segment) in dy.chunks_exact(shape.dim).zip(&segments) {
                add(&mut to[segment * shape.dim..][..shape.dim], dy);
            }
        }
        tape.add_grad(x, dy);
    });
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_segment_begins_behind_the_first_separator() {
        // Two items, (time, batch): 5 9 6 9 and 9 7 8 0.
        let ids = [5, 9, 9, 7, 6, 8, 9, 0];
        assert_eq!(segment_ids(&ids, 2, 9), [0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(segment_ids(&ids, 2, 4), [0; 8], "no separator");
    }
}
