//! The loops of a convolution with maximum that are not matrix products; `conv.rs` has the rest.

use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// `y += a x`
pub(in crate::layers) struct Axpy<'a, T> {
    pub a: T,
    pub x: &'a [T],
    pub y: &'a mut [T],
}

impl<T: Real> Kernel<T> for Axpy<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let a = V::splat(self.a);
        for (x, y) in self.x.chunks(V::N).zip(self.y.chunks_mut(V::N)) {
            a.fma(V::load(x), V::load(y)).store(y);
        }
    }
}

/// The largest `z` of each column over the positions, and where it was. One NaN makes the column NaN: comparisons
/// would pass over it.
pub(in crate::layers) struct Best<'a, T> {
    pub z: &'a [T],
    pub best: &'a mut [T],
    pub won: &'a mut [T],
}

impl<T: Real> Kernel<T> for Best<'_, T> {
    type Out = ();
    /// The first of equal maxima wins.
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let width = self.best.len();
        for j in (0..width).step_by(V::N) {
            let e = width.min(j + V::N);
            let (mut best, mut won) = (V::load(&self.z[j..e]), V::splat(T::ZERO));
            // Stays zero while all is finite; a product costs less than another comparison.
            let mut odd = best.mul(V::splat(T::ZERO));
            for (p, row) in self.z.chunks_exact(width).enumerate().skip(1) {
                let v = V::load(&row[j..e]);
                odd = v.fma(V::splat(T::ZERO), odd);
                won = best.lt(v, V::splat(T::of(p as f64)), won);
                best = best.lt(v, v, best);
            }
            best.store(&mut self.best[j..e]);
            won.store(&mut self.won[j..e]);
            let mut flags = [T::ZERO; 16];
            odd.store(&mut flags[..V::N]);
            if flags.iter().any(|x| !x.is_finite()) {
                for (k, best) in self.best[j..e].iter_mut().enumerate() {
                    let mut column = self.z.chunks_exact(width).map(|row| row[j + k]);
                    if column.any(|z| z.to_f64().is_nan()) {
                        *best = T::of(f64::NAN);
                    }
                }
            }
        }
    }
}

/// `y = f(y + bias)`
pub(in crate::layers) struct Finish<'a, T> {
    pub y: &'a mut [T],
    pub bias: &'a [T],
    pub tanh: bool,
}

impl<T: Real> Kernel<T> for Finish<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let zero = V::splat(T::ZERO);
        for y in self.y.chunks_exact_mut(self.bias.len()) {
            for (y, b) in y.chunks_mut(V::N).zip(self.bias.chunks(V::N)) {
                let v = V::load(y).add(V::load(b));
                (if self.tanh {
                    v.tanh()
                } else {
                    v.lt(zero, zero, v)
                })
                .store(y);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_at_any_position_makes_its_column_nan_and_no_other() {
        for (width, positions) in [(1, 1), (5, 4), (16, 3), (37, 6)] {
            for at in 0..width * positions {
                let mut z: Vec<f32> = (0..width * positions)
                    .map(|i| (i * 7 % 11) as f32)
                    .collect();
                z[(at + width) % (width * positions)] = f32::INFINITY;
                z[at] = f32::NAN;
                let (mut best, mut won) = (vec![0.0; width], vec![0.0; width]);
                f32::launch(Best {
                    z: &z,
                    best: &mut best,
                    won: &mut won,
                });
                for (k, best) in best.iter().enumerate() {
                    let column: Vec<f32> = z.chunks(width).map(|row| row[k]).collect();
                    let largest = column.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    assert_eq!(best.is_nan(), k == at % width, "{width} {positions} {at}");
                    assert!(best.is_nan() || *best == largest);
                }
            }
        }
    }
}
