//! Losses of one row of logits against its target.

use crate::numeric::{Real, softmax};

/// `ln sum_k e^(z_k) - z_y`; adds `scale` times `softmax(z) - onehot(y)` to `seed`.
pub(super) fn cross_entropy<T: Real>(z: &[T], y: usize, seed: &mut [T], scale: T) -> f64 {
    let mut p = z.to_vec();
    let log = softmax(&mut p);
    for (s, p) in seed.iter_mut().zip(&p) {
        *s += *p * scale;
    }
    seed[y] -= scale;
    (log - z[y]).to_f64()
}

/// `z_y - max_(k != y) z_k`, or with `hinge` `max(0, 1 - margin)`; adds `scale` times the gradient to `seed`.
pub(super) fn margin<T: Real>(z: &[T], y: usize, seed: &mut [T], scale: T, hinge: bool) -> f64 {
    let other = best_other(z, y);
    let margin = other.map_or(f64::INFINITY, |o| (z[y] - z[o]).to_f64());
    let (value, slope) = if !hinge {
        (margin, scale)
    } else if margin < 1.0 {
        (1.0 - margin, -scale)
    } else {
        // A NaN margin is not below 1, and must not look like a loss of zero.
        (if margin.is_nan() { margin } else { 0.0 }, T::ZERO)
    };
    if let Some(o) = other {
        seed[y] += slope;
        seed[o] -= slope;
    }
    value
}

/// The best class that is not `y`; the first of equals. A NaN is best, so that it is never overlooked.
fn best_other<T: Real>(z: &[T], y: usize) -> Option<usize> {
    let mut best: Option<usize> = None;
    for k in (0..z.len()).filter(|k| *k != y) {
        if best.is_none_or(|b| z[k] > z[b] || z[k].to_f64().is_nan()) {
            best = Some(k);
        }
    }
    best
}
