//! The context of one step, `u = sum_k a[k] memory[k]`, forward and backward; `layer.rs` and `backward.rs` have the rest.

use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Dot, Real};

/// The contexts of all items.
pub(super) struct Context<'a, T> {
    /// (batch, source), zero beyond an item's length.
    pub attention: &'a [T],
    /// (source, batch, m)
    pub memory: &'a [T],
    /// (batch, m)
    pub context: &'a mut [T],
    pub batch: usize,
    pub lens: &'a [usize],
}

impl<T: Real> Kernel<T> for Context<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (dim, source) = (
            self.context.len() / self.batch,
            self.attention.len() / self.batch,
        );
        for (b, u) in self.context.chunks_exact_mut(dim).enumerate() {
            let a = &self.attention[b * source..][..self.lens[b].min(source)];
            u.fill(T::ZERO);
            for (k, a) in a.iter().enumerate() {
                let (a, row) = (
                    V::splat(*a),
                    &self.memory[(k * self.batch + b) * dim..][..dim],
                );
                for (u, m) in u.chunks_mut(V::N).zip(row.chunks(V::N)) {
                    V::load(u).add(a.mul(V::load(m))).store(u);
                }
            }
        }
    }
}

/// Back from the context of item `b` to its scores and its memory.
pub(super) struct BackContext<'a, T> {
    pub du: &'a [T],
    pub attention: &'a [T],
    pub memory: &'a [T],
    /// The gradients of the scores, before the softmax.
    pub ds: &'a mut [T],
    pub dmemory: Option<&'a mut [T]>,
    pub b: usize,
    pub batch: usize,
}

impl<T: Real> Kernel<T> for BackContext<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        let (dim, du) = (self.du.len(), self.du);
        for (k, ds) in self.ds.iter_mut().enumerate() {
            let row = &self.memory[(k * self.batch + self.b) * dim..][..dim];
            *ds = Dot(du, row).run::<V>();
        }
        let mean = Dot(self.attention, self.ds).run::<V>();
        for (k, (a, ds)) in self.attention.iter().zip(self.ds).enumerate() {
            *ds = *a * (*ds - mean);
            let Some(dmemory) = &mut self.dmemory else {
                continue;
            };
            let (a, row) = (
                V::splat(*a),
                &mut dmemory[(k * self.batch + self.b) * dim..][..dim],
            );
            for (m, u) in row.chunks_mut(V::N).zip(du.chunks(V::N)) {
                V::load(m).add(a.mul(V::load(u))).store(m);
            }
        }
    }
}
