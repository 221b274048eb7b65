//! The loops of a convolution with maximum that are not matrix products; `conv.rs` has the rest.

use crate::Real;
use crate::simd::{Kernel, Lanes};

/// `y += a x`
pub(super) struct Axpy<'a, T> {
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

/// The largest `z` of each column over the positions, and where it was.
pub(super) struct Best<'a, T> {
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
            for (p, row) in self.z.chunks_exact(width).enumerate().skip(1) {
                let v = V::load(&row[j..e]);
                won = best.lt(v, V::splat(T::of(p as f64)), won);
                best = best.lt(v, v, best);
            }
            best.store(&mut self.best[j..e]);
            won.store(&mut self.won[j..e]);
        }
    }
}

/// `y = f(y + bias)`
pub(super) struct Finish<'a, T> {
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
