//! The element-wise parts of an RNN step, forward and backward.

use crate::layers::recurrent::StepRows;
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// `tanh` of the sum; beyond an item's length the state before.
pub(super) struct Forward<'a, T> {
    pub step: StepRows<'a>,
    pub bias: &'a [T],
    pub before: &'a [T],
    pub h: &'a mut [T],
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        for (b, h) in self.h.chunks_exact_mut(self.step.n).enumerate() {
            if self.step.is_padding(b) {
                h.copy_from_slice(&self.before[self.step.row(b)]);
                continue;
            }
            for (h, bias) in h.chunks_mut(V::N).zip(self.bias.chunks(V::N)) {
                V::load(h).add(V::load(bias)).tanh().store(h);
            }
        }
    }
}

/// Back through `tanh`.
pub(super) struct Back<'a, T> {
    pub step: StepRows<'a>,
    pub h: &'a [T],
    pub dh: &'a mut [T],
    pub d: &'a mut [T],
}

impl<T: Real> Kernel<T> for Back<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (zero, one, tiny) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::TINY));
        for (b, d) in self.d.chunks_exact_mut(self.step.n).enumerate() {
            let (h, dh) = (&self.h[self.step.row(b)], &mut self.dh[self.step.row(b)]);
            if self.step.is_padding(b) {
                d.fill(T::ZERO);
                continue;
            }
            for ((h, dh), d) in h
                .chunks(V::N)
                .zip(dh.chunks_mut(V::N))
                .zip(d.chunks_mut(V::N))
            {
                let (h, g) = (V::load(h), V::load(dh));
                let g = g.abs().lt(tiny, zero, g);
                g.mul(one.sub(h.mul(h))).store(d);
                zero.store(dh);
            }
        }
    }
}
