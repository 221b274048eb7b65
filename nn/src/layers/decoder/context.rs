//! The context of one step, `u = sum_k a[k] memory[k]`, forward and backward; `layer.rs` and `backward.rs` have the rest.

use super::by_item::ByItem;
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Dot, Real};

/// The contexts of all items.
pub(super) struct Context<'a, T> {
    /// (batch, source), zero beyond an item's length.
    pub attention: &'a [T],
    pub memory: ByItem<'a, T>,
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
            // Some columns at a time, whose sums stay in registers.
            for (i, u) in u.chunks_mut(WIDE * V::N).enumerate() {
                let mut sums = [V::splat(T::ZERO); WIDE];
                for (k, a) in a.iter().enumerate() {
                    let row = &self.memory.row(b, k)[i * WIDE * V::N..][..u.len()];
                    let a = V::splat(*a);
                    for (sum, m) in sums.iter_mut().zip(row.chunks(V::N)) {
                        *sum = sum.add(a.mul(V::load(m)));
                    }
                }
                for (u, sum) in u.chunks_mut(V::N).zip(sums) {
                    sum.store(u);
                }
            }
        }
    }
}

/// Vectors of columns whose sums are kept in registers.
const WIDE: usize = 8;

/// Back from the context of item `b` to its scores.
pub(super) struct BackContext<'a, T> {
    pub du: &'a [T],
    pub attention: &'a [T],
    pub memory: ByItem<'a, T>,
    /// The gradients of the scores, before the softmax.
    pub ds: &'a mut [T],
    pub b: usize,
}

impl<T: Real> Kernel<T> for BackContext<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        for (k, ds) in self.ds.iter_mut().enumerate() {
            *ds = Dot(self.du, self.memory.row(self.b, k)).run::<V>();
        }
        let mean = Dot(self.attention, self.ds).run::<V>();
        for (a, ds) in self.attention.iter().zip(self.ds) {
            *ds = *a * (*ds - mean);
        }
    }
}

/// Back from the contexts of all steps to the memory: `dmemory[k] += a[t][k] du[t]`, last step first. After the loop
/// over steps, since at each of them the whole memory would pass through the caches to be added to.
pub(super) struct BackMemory<'a, T> {
    /// (time, batch, source)
    pub attention: &'a [T],
    /// (time, batch, m)
    pub du: &'a [T],
    /// (source, batch, m)
    pub dmemory: &'a mut [T],
    pub lens: &'a [usize],
    pub source: usize,
    pub dim: usize,
}

/// Source positions whose sums are kept in registers together, and vectors of columns of each.
const KEYS: usize = 4;
const COLUMNS: usize = 4;

impl<T: Real> Kernel<T> for BackMemory<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        for b in 0..self.lens.len() {
            let len = self.lens[b].min(self.source);
            for k in (0..len).step_by(KEYS) {
                for j in (0..self.dim).step_by(COLUMNS * V::N) {
                    match KEYS.min(len - k) {
                        4 => self.tile::<V, 4>(b, k, j),
                        3 => self.tile::<V, 3>(b, k, j),
                        2 => self.tile::<V, 2>(b, k, j),
                        _ => self.tile::<V, 1>(b, k, j),
                    }
                }
            }
        }
    }
}

impl<T: Real> BackMemory<'_, T> {
    /// `K` positions from `k` on, some columns from `j` on.
    #[inline(always)]
    fn tile<V: Lanes<T = T>, const K: usize>(&mut self, b: usize, k: usize, j: usize) {
        let (batch, dim, source) = (self.lens.len(), self.dim, self.source);
        let width = (COLUMNS * V::N).min(dim - j);
        let mut sums = [[V::splat(T::ZERO); COLUMNS]; K];
        for (r, sums) in sums.iter_mut().enumerate() {
            let row = &self.dmemory[((k + r) * batch + b) * dim + j..][..width];
            for (sum, row) in sums.iter_mut().zip(row.chunks(V::N)) {
                *sum = V::load(row);
            }
        }
        let steps = self.du.chunks_exact(batch * dim);
        let steps = steps.zip(self.attention.chunks_exact(batch * source));
        for (du, attention) in steps.rev() {
            let du = &du[b * dim + j..][..width];
            let a = &attention[b * source + k..][..K];
            let mut columns = [V::splat(T::ZERO); COLUMNS];
            for (column, du) in columns.iter_mut().zip(du.chunks(V::N)) {
                *column = V::load(du);
            }
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = V::splat(*a);
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = sum.add(a.mul(column));
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let row = &mut self.dmemory[((k + r) * batch + b) * dim + j..][..width];
            for (sum, row) in sums.into_iter().zip(row.chunks_mut(V::N)) {
                sum.store(row);
            }
        }
    }
}
