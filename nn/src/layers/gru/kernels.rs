//! The element-wise parts of a GRU step, forward and backward; `layer.rs` has the equations.
//!
//! Knows nothing of matrices: the products with `W` and `U` happen between the parts.

use crate::layers::recurrent::StepRows;
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// `z` and `r` from `x W + h U`, and `q = r h`.
pub(in crate::layers) struct Gates<'a, T> {
    pub step: StepRows<'a>,
    pub bias: &'a [T],
    pub g: &'a mut [T],
    pub before: &'a [T],
    pub q: &'a mut [T],
}

impl<T: Real> Kernel<T> for Gates<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.step.n;
        for (b, (g, q)) in self
            .g
            .chunks_exact_mut(2 * n)
            .zip(self.q.chunks_exact_mut(n))
            .enumerate()
        {
            if self.step.is_padding(b) {
                g.fill(T::ZERO);
                q.fill(T::ZERO);
                continue;
            }
            let before = &self.before[self.step.row(b)];
            for (g, bias) in g.chunks_mut(V::N).zip(self.bias.chunks(V::N)) {
                V::load(g).add(V::load(bias)).sigmoid().store(g);
            }
            for ((r, h), q) in g[n..]
                .chunks(V::N)
                .zip(before.chunks(V::N))
                .zip(q.chunks_mut(V::N))
            {
                V::load(r).mul(V::load(h)).store(q);
            }
        }
    }
}

/// `n` from `x Wn + q Un`, and the new state.
pub(in crate::layers) struct New<'a, T> {
    pub step: StepRows<'a>,
    pub bias: &'a [T],
    pub g: &'a [T],
    pub a: &'a mut [T],
    pub before: &'a [T],
    pub h: &'a mut [T],
}

impl<T: Real> Kernel<T> for New<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (n, one) = (self.step.n, V::splat(T::ONE));
        for (b, h) in self.h.chunks_exact_mut(n).enumerate() {
            let before = &self.before[self.step.row(b)];
            if self.step.is_padding(b) {
                h.copy_from_slice(before);
                self.a[self.step.row(b)].fill(T::ZERO);
                continue;
            }
            let (z, a) = (&self.g[b * 2 * n..][..n], &mut self.a[self.step.row(b)]);
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let new = V::load(&a[j..e]).add(V::load(&self.bias[j..e])).tanh();
                let z = V::load(&z[j..e]);
                new.store(&mut a[j..e]);
                one.sub(z)
                    .fma(new, z.mul(V::load(&before[j..e])))
                    .store(&mut h[j..e]);
            }
        }
    }
}

/// Back to `z` and `n`: `dh` becomes `dh z`.
pub(in crate::layers) struct BackNew<'a, T> {
    pub step: StepRows<'a>,
    pub g: &'a [T],
    pub a: &'a [T],
    pub before: &'a [T],
    pub more_g: Option<&'a [T]>,
    pub more_a: Option<&'a [T]>,
    pub dh: &'a mut [T],
    pub dg: &'a mut [T],
    pub da: &'a mut [T],
}

impl<T: Real> Kernel<T> for BackNew<'_, T> {
    type Out = ();
    /// `dh` becomes `dh z`; `dg` gets the gradient before the sigmoid for `z`, and for `r` only what `more_g` has.
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.step.n;
        let (zero, one, tiny) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::TINY));
        for (b, dg) in self.dg.chunks_exact_mut(2 * n).enumerate() {
            let row = self.step.row(b);
            let (a, before) = (&self.a[row.clone()], &self.before[row.clone()]);
            let (dh, da) = (&mut self.dh[row.clone()], &mut self.da[row.clone()]);
            if self.step.is_padding(b) {
                dg.fill(T::ZERO);
                da.fill(T::ZERO);
                continue;
            }
            let g = &self.g[self.step.wide(b, 2)];
            let more_g = self.more_g.map(|v| &v[self.step.wide(b, 2)]);
            let more_a = self.more_a.map(|v| &v[row]);
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let (z, a, d) = (V::load(&g[j..e]), V::load(&a[j..e]), V::load(&dh[j..e]));
                let d = d.abs().lt(tiny, zero, d);
                let (mut mz, mut mr, mut mn) = (zero, zero, zero);
                if let Some(more) = more_g {
                    (mz, mr) = (V::load(&more[j..e]), V::load(&more[n + j..n + e]));
                }
                if let Some(more) = more_a {
                    mn = V::load(&more[j..e]);
                }
                let dz = d.fma(V::load(&before[j..e]).sub(a), mz);
                let dn = d.fma(one.sub(z), mn);
                dz.mul(z).mul(one.sub(z)).store(&mut dg[j..e]);
                mr.store(&mut dg[n + j..n + e]);
                dn.mul(one.sub(a.mul(a))).store(&mut da[j..e]);
                d.mul(z).store(&mut dh[j..e]);
            }
        }
    }
}

/// Back through `q` to `r` and the state before.
pub(in crate::layers) struct BackGates<'a, T> {
    pub step: StepRows<'a>,
    pub g: &'a [T],
    pub before: &'a [T],
    pub dq: &'a [T],
    pub dh: &'a mut [T],
    pub dg: &'a mut [T],
}

impl<T: Real> Kernel<T> for BackGates<'_, T> {
    type Out = ();
    /// Adds what comes through `q = r h[t-1]` to `dh` and to the gradient of `r`.
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (n, one) = (self.step.n, V::splat(T::ONE));
        for (b, dg) in self.dg.chunks_exact_mut(2 * n).enumerate() {
            if self.step.is_padding(b) {
                continue;
            }
            let row = self.step.row(b);
            let (r, dr) = (&self.g[b * 2 * n + n..(b + 1) * 2 * n], &mut dg[n..]);
            let (before, dq, dh) = (
                &self.before[row.clone()],
                &self.dq[row.clone()],
                &mut self.dh[row],
            );
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let (r, q) = (V::load(&r[j..e]), V::load(&dq[j..e]));
                let d = q.fma(V::load(&before[j..e]), V::load(&dr[j..e]));
                d.mul(r).mul(one.sub(r)).store(&mut dr[j..e]);
                q.fma(r, V::load(&dh[j..e])).store(&mut dh[j..e]);
            }
        }
    }
}
