//! Additive attention scores, `s = v . tanh(key + q)`, forward and backward; `decoder.rs` has the rest.

use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Dot, Real};

/// One query of every item against its keys.
pub(in crate::layers) struct Scores<'a, T> {
    pub keys: &'a [T],
    pub q: &'a [T],
    pub v: &'a [T],
    pub hidden: &'a mut [T],
    pub scores: &'a mut [T],
    pub batch: usize,
    pub lens: &'a [usize],
}

impl<T: Real> Kernel<T> for Scores<'_, T> {
    type Out = ();
    /// `hidden = tanh(key + q)`, `score = v . hidden`, for real source positions.
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let size = self.v.len();
        let source = self.scores.len() / self.batch;
        for (row, (key, hidden)) in self
            .keys
            .chunks_exact(size)
            .zip(self.hidden.chunks_exact_mut(size))
            .enumerate()
        {
            let (k, b) = (row / self.batch, row % self.batch);
            if k >= self.lens[b] {
                continue;
            }
            let q = &self.q[b * size..(b + 1) * size];
            for j in (0..size).step_by(V::N) {
                let e = size.min(j + V::N);
                V::load(&key[j..e])
                    .add(V::load(&q[j..e]))
                    .tanh()
                    .store(&mut hidden[j..e]);
            }
            self.scores[b * source + k] = Dot(self.v, hidden).run::<V>();
        }
    }
}

/// Back from the scores of item `b` to its query, its keys and `v`.
pub(in crate::layers) struct BackScores<'a, T> {
    pub ds: &'a [T],
    pub hidden: &'a [T],
    pub v: &'a [T],
    pub dq: &'a mut [T],
    pub dv: &'a mut [T],
    pub dkeys: Option<&'a mut [T]>,
    pub b: usize,
    pub batch: usize,
}

impl<T: Real> Kernel<T> for BackScores<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        let (size, one) = (self.v.len(), V::splat(T::ONE));
        for (k, ds) in self.ds.iter().enumerate() {
            let at = (k * self.batch + self.b) * size;
            let (hidden, ds) = (&self.hidden[at..at + size], V::splat(*ds));
            for j in (0..size).step_by(V::N) {
                let e = size.min(j + V::N);
                let h = V::load(&hidden[j..e]);
                let d = ds.mul(V::load(&self.v[j..e])).mul(one.sub(h.mul(h)));
                V::load(&self.dq[j..e]).add(d).store(&mut self.dq[j..e]);
                ds.fma(h, V::load(&self.dv[j..e])).store(&mut self.dv[j..e]);
                if let Some(keys) = &mut self.dkeys {
                    V::load(&keys[at + j..at + e])
                        .add(d)
                        .store(&mut keys[at + j..at + e]);
                }
            }
        }
    }
}
