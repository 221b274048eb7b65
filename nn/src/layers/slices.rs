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

/// `to += from`
pub(crate) fn add<T: Real>(to: &mut [T], from: &[T]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t += *f;
    }
}
