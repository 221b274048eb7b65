//! Additive attention scores, `s = v . tanh(key + q)`, forward and backward; `decoder.rs` has the rest.

use super::by_item::ByItem;
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Dot, Real};

/// One query of every item against its keys.
pub(super) struct Scores<'a, T> {
    pub keys: ByItem<'a, T>,
    pub q: &'a [T],
    pub v: &'a [T],
    /// (batch, source, size)
    pub hidden: &'a mut [T],
    /// (batch, source)
    pub scores: &'a mut [T],
    pub lens: &'a [usize],
}

impl<T: Real> Kernel<T> for Scores<'_, T> {
    type Out = ();
    /// `hidden = tanh(key + q)`, `score = v . hidden`, for real source positions.
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (size, source) = (self.v.len(), self.scores.len() / self.lens.len());
        let items = self
            .scores
            .chunks_exact_mut(source)
            .zip(self.hidden.chunks_exact_mut(source * size))
            .zip(self.q.chunks_exact(size));
        for (b, ((scores, hidden), q)) in items.enumerate() {
            let real = scores[..self.lens[b].min(source)].iter_mut();
            for (k, (score, hidden)) in real.zip(hidden.chunks_exact_mut(size)).enumerate() {
                let key = self.keys.row(b, k);
                for j in (0..size).step_by(V::N) {
                    let e = size.min(j + V::N);
                    V::load(&key[j..e])
                        .add(V::load(&q[j..e]))
                        .tanh()
                        .store(&mut hidden[j..e]);
                }
                *score = Dot(self.v, hidden).run::<V>();
            }
        }
    }
}

/// Back from the scores of an item to its query, its keys and `v`.
pub(super) struct BackScores<'a, T> {
    pub ds: &'a [T],
    /// (source, size)
    pub hidden: &'a [T],
    pub v: &'a [T],
    pub dq: &'a mut [T],
    pub dv: &'a mut [T],
    /// (source, size)
    pub dkeys: Option<&'a mut [T]>,
}

/// Vectors of columns whose sums are kept in registers.
const WIDE: usize = 4;

impl<T: Real> Kernel<T> for BackScores<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        let size = self.v.len();
        for j in (0..size).step_by(WIDE * V::N) {
            let e = size.min(j + WIDE * V::N);
            if e - j == WIDE * V::N {
                // Of a width that the compiler knows, so that nothing is masked.
                self.columns::<V>(j, j + WIDE * V::N);
            } else {
                self.columns::<V>(j, e);
            }
        }
    }
}

impl<T: Real> BackScores<'_, T> {
    /// Columns `j..e`, at most [`WIDE`] vectors.
    #[inline(always)]
    fn columns<V: Lanes<T = T>>(&mut self, j: usize, e: usize) {
        let (size, one) = (self.v.len(), V::splat(T::ONE));
        let (mut v, mut dq, mut dv) = (
            [V::splat(T::ZERO); WIDE],
            [V::splat(T::ZERO); WIDE],
            [V::splat(T::ZERO); WIDE],
        );
        for (i, j) in (j..e).step_by(V::N).enumerate() {
            let e = e.min(j + V::N);
            v[i] = V::load(&self.v[j..e]);
            dq[i] = V::load(&self.dq[j..e]);
            dv[i] = V::load(&self.dv[j..e]);
        }
        for (k, ds) in self.ds.iter().enumerate() {
            let at = k * size;
            let (hidden, ds) = (&self.hidden[at + j..at + e], V::splat(*ds));
            let mut keys = self.dkeys.as_mut().map(|keys| &mut keys[at + j..at + e]);
            for (i, h) in hidden.chunks(V::N).enumerate() {
                let h = V::load(h);
                let d = ds.mul(v[i]).mul(one.sub(h.mul(h)));
                dq[i] = dq[i].add(d);
                dv[i] = ds.fma(h, dv[i]);
                if let Some(keys) = &mut keys {
                    let here = i * V::N..keys.len().min((i + 1) * V::N);
                    V::load(&keys[here.clone()]).add(d).store(&mut keys[here]);
                }
            }
        }
        for (i, j) in (j..e).step_by(V::N).enumerate() {
            let e = e.min(j + V::N);
            dq[i].store(&mut self.dq[j..e]);
            dv[i].store(&mut self.dv[j..e]);
        }
    }
}
