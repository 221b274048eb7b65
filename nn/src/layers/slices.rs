//! Steps of a sequence as slices of one array, and sums of slices.

use crate::numeric::Real;

/// Step `before` to read (the initial row when there is none) and step `t` to write.
pub(crate) fn split<'a, T>(
    all: &'a mut [T],
    before: Option<usize>,
    t: usize,
    row: usize,
    initial: &'a [T],
) -> (&'a [T], &'a mut [T]) {
    match before {
        None => (initial, &mut all[t * row..(t + 1) * row]),
        Some(b) if b < t => {
            let (left, right) = all.split_at_mut(t * row);
            (&left[b * row..(b + 1) * row], &mut right[..row])
        }
        Some(b) => {
            let (left, right) = all.split_at_mut(b * row);
            (&right[..row], &mut left[t * row..(t + 1) * row])
        }
    }
}

/// Rows of `dim` numbers that stand as (outer, inner), as (inner, outer).
pub(crate) fn turn<T: Copy>(from: &[T], inner: usize, dim: usize, to: &mut [T]) {
    let outer = from.len() / (inner * dim);
    for (i, rows) in to.chunks_exact_mut(outer * dim).enumerate() {
        for (o, row) in rows.chunks_exact_mut(dim).enumerate() {
            row.copy_from_slice(&from[(o * inner + i) * dim..][..dim]);
        }
    }
}

/// `to += from`
pub(crate) fn add<T: Real>(to: &mut [T], from: &[T]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t += *f;
    }
}
