//! The element-wise half of an LSTM step, forward and backward; `layer.rs` has the equations.
//!
//! Knows nothing of matrices: the products with `W` and `U` happen before and after.

use crate::layers::recurrent::StepRows;
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// Units `j..e` of gate `k` in a row of gates.
#[inline(always)]
fn gate<V: Lanes>(row: &[V::T], n: usize, k: usize, j: usize, e: usize) -> V {
    V::load(&row[k * n + j..k * n + e])
}

/// From `x W + h U` of the four gates to `[i f g]`, `c`, `tanh(c)` and `o`.
#[inline(always)]
pub(super) fn gates_and_cell<V: Lanes>(
    sums: [V; 4],
    bias: [V; 4],
    c_before: V,
) -> ([V; 3], V, V, V) {
    let (gates, cell, o) = up_to_cell(sums, bias, c_before);
    (gates, cell, cell.tanh(), o)
}

/// The same without `tanh(c)`.
#[inline(always)]
pub(super) fn up_to_cell<V: Lanes>(sums: [V; 4], bias: [V; 4], c_before: V) -> ([V; 3], V, V) {
    let i = sums[0].add(bias[0]).sigmoid();
    let f = sums[1].add(bias[1]).sigmoid();
    let a = sums[2].add(bias[2]).tanh();
    let o = sums[3].add(bias[3]).sigmoid();
    ([i, f, a], f.fma(c_before, i.mul(a)), o)
}

/// One step forward: `g` holds `x W + h U` on entry and the gates on return.
pub(in crate::layers) struct Forward<'a, T> {
    pub(in crate::layers) step: StepRows<'a>,
    pub(in crate::layers) bias: &'a [T],
    pub(in crate::layers) g: &'a mut [T],
    pub(in crate::layers) h_before: &'a [T],
    pub(in crate::layers) c_before: &'a [T],
    pub(in crate::layers) h: &'a mut [T],
    pub(in crate::layers) c: &'a mut [T],
    pub(in crate::layers) tanh_c: &'a mut [T],
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.step.n;
        for (b, g) in self.g.chunks_exact_mut(4 * n).enumerate() {
            let row = self.step.row(b);
            let (h, c, tanh_c) = (
                &mut self.h[row.clone()],
                &mut self.c[row.clone()],
                &mut self.tanh_c[row.clone()],
            );
            let c_before = &self.c_before[row.clone()];
            if self.step.is_padding(b) {
                h.copy_from_slice(&self.h_before[row]);
                c.copy_from_slice(c_before);
                tanh_c.fill(T::ZERO);
                g.fill(T::ZERO);
                continue;
            }
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let (mut sums, mut bias) = ([V::splat(T::ZERO); 4], [V::splat(T::ZERO); 4]);
                for k in 0..4 {
                    sums[k] = gate(g, n, k, j, e);
                    bias[k] = gate(self.bias, n, k, j, e);
                }
                let ([i, f, a], cell, squashed, o) =
                    gates_and_cell(sums, bias, V::load(&c_before[j..e]));
                o.mul(squashed).store(&mut h[j..e]);
                cell.store(&mut c[j..e]);
                squashed.store(&mut tanh_c[j..e]);
                i.store(&mut g[j..e]);
                f.store(&mut g[n + j..n + e]);
                a.store(&mut g[2 * n + j..2 * n + e]);
                o.store(&mut g[3 * n + j..3 * n + e]);
            }
        }
    }
}

/// One step backward: `dh`, `dc` are those of this step on entry, and on return what
/// reaches the step before except through `U`; `d` becomes the gradient before the activations.
pub(in crate::layers) struct Back<'a, T> {
    pub(in crate::layers) step: StepRows<'a>,
    pub(in crate::layers) gates: &'a [T],
    pub(in crate::layers) tanh_c: &'a [T],
    pub(in crate::layers) c_before: &'a [T],
    pub(in crate::layers) extra: Option<&'a [T]>,
    pub(in crate::layers) dh: &'a mut [T],
    pub(in crate::layers) dc: &'a mut [T],
    pub(in crate::layers) d: &'a mut [T],
}

impl<T: Real> Kernel<T> for Back<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.step.n;
        let (zero, one, tiny) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::TINY));
        for (b, d) in self.d.chunks_exact_mut(4 * n).enumerate() {
            let row = self.step.row(b);
            let (dh, dc) = (&mut self.dh[row.clone()], &mut self.dc[row.clone()]);
            if self.step.is_padding(b) {
                // The state was carried unchanged: dh and dc pass through.
                d.fill(T::ZERO);
                continue;
            }
            let gates = &self.gates[self.step.wide(b, 4)];
            let (tanh_c, c_before) = (&self.tanh_c[row.clone()], &self.c_before[row]);
            let extra = self.extra.map(|v| &v[self.step.wide(b, 4)]);
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let (i, f): (V, V) = (gate(gates, n, 0, j, e), gate(gates, n, 1, j, e));
                let (a, o): (V, V) = (gate(gates, n, 2, j, e), gate(gates, n, 3, j, e));
                let (mut mi, mut mf, mut ma, mut mo) = (zero, zero, zero, zero);
                if let Some(more) = extra {
                    (mi, mf) = (gate(more, n, 0, j, e), gate(more, n, 1, j, e));
                    (ma, mo) = (gate(more, n, 2, j, e), gate(more, n, 3, j, e));
                }
                let (dh_now, squashed) = (V::load(&dh[j..e]), V::load(&tanh_c[j..e]));
                let dh_now = dh_now.abs().lt(tiny, zero, dh_now);
                let through = dh_now.mul(o).mul(one.sub(squashed.mul(squashed)));
                let dc_now = V::load(&dc[j..e]).add(through);
                let dc_now = dc_now.abs().lt(tiny, zero, dc_now);
                let di = dc_now.fma(a, mi);
                let df = dc_now.fma(V::load(&c_before[j..e]), mf);
                let da = dc_now.fma(i, ma);
                let dout = dh_now.fma(squashed, mo);
                di.mul(i).mul(one.sub(i)).store(&mut d[j..e]);
                df.mul(f).mul(one.sub(f)).store(&mut d[n + j..n + e]);
                da.mul(one.sub(a.mul(a)))
                    .store(&mut d[2 * n + j..2 * n + e]);
                dout.mul(o)
                    .mul(one.sub(o))
                    .store(&mut d[3 * n + j..3 * n + e]);
                dc_now.mul(f).store(&mut dc[j..e]);
                zero.store(&mut dh[j..e]);
            }
        }
    }
}
