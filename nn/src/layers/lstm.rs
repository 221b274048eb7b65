//! LSTM over a whole sequence.
//!
//! `[i f g o] = x[t] W + h[t-1] U + b`, then `i, f, o` through the sigmoid and `g` through tanh;
//! `c[t] = f c[t-1] + i g`, `h[t] = o tanh(c[t])`.
//! `x` is (time, batch, inputs), `W` (inputs, 4 units), `U` (units, 4 units), `b` (4 units);
//! `h`, `c` are (time, batch, units), the gates (time, batch, 4 units) in the order i f g o.
//!
//! Backward, from the last step read to the first, with `dh`, `dc` arriving from the outputs and the step after:
//! `do = dh tanh(c)`, `dc += dh o (1 - tanh(c)^2)`, `di = dc g`, `df = dc c[t-1]`, `dg = dc i`;
//! through the activations to `dpre`; `dh[t-1] = dpre U^T`, `dc[t-1] = dc f`.
//! One product at the end for each of `dx = dpre W^T`, `dW = x^T dpre`, `dU = h[t-1]^T dpre`.

use super::Lens;
use super::recurrent::{Direction, Gate, Recurrent, States, recurrent_product};
use crate::Real;
use crate::gemm::{Into, Mat, gemm};
use crate::grads::{Grads, Rows};
use crate::params::{Init, Layout, Params, Span};
use crate::simd::{Kernel, Lanes};
use crate::tape::{Op, Shape, Tape, Var};

/// Long short-term memory.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// (inputs, 4 units)
    pub input: Span,
    /// (units, 4 units)
    pub recurrent: Span,
    /// (1, 4 units)
    pub bias: Span,
    /// Hidden units.
    pub units: usize,
}

impl Lstm {
    /// All weights start as `init`, biases at zero; [`Lstm::forget_bias`] changes one of them.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Lstm {
            input: layout.add_map(&format!("{name}.input"), inputs, 4 * units, init),
            recurrent: layout.add_map(&format!("{name}.recurrent"), units, 4 * units, init),
            bias: layout.add(&format!("{name}.bias"), 1, 4 * units, Init::Constant(0.0)),
            units,
        }
    }

    /// Sets the bias of the forget gate in fresh weights.
    pub fn forget_bias<T: Real>(&self, params: &mut Params<T>, value: f64) {
        params.get_mut(self.bias)[self.units..2 * self.units].fill(T::of(value));
    }

    /// Runs over all steps from `initial` (hidden, cell), or from zero.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<(Var, Var)>,
        direction: Direction,
    ) -> States {
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, inputs) = (
            self.units,
            &[Some(x), initial.map(|s| s.0), initial.map(|s| s.1)],
        );
        let inputs: Vec<Var> = inputs.iter().flatten().copied().collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let wants = tape.wants(h);
        let c = tape.value(shape.with_dim(n), wants);
        let tanh_c = tape.value(shape.with_dim(n), false);
        let gates = tape.value(shape.with_dim(4 * n), wants);
        let (mut vh, mut vc, mut vt, mut vg) = (
            tape.take(h),
            tape.take(c),
            tape.take(tanh_c),
            tape.take(gates),
        );

        gemm(
            Into::Set,
            &mut vg,
            Mat::new(tape.get(x), shape.rows(), shape.dim),
            params.mat(self.input),
        );
        let u = Recurrent::new(params.mat(self.recurrent), time);
        let zero = tape.zeros(batch * n);
        let (h0, c0) = initial.map_or((&zero[..], &zero[..]), |(h, c)| (tape.get(h), tape.get(c)));
        let row = batch * n;
        for t in direction.steps(time) {
            let g = &mut vg[t * 4 * row..(t + 1) * 4 * row];
            let before = direction.before(t, time);
            let (h_before, h_now) = split(&mut vh, before, t, row, h0);
            let (c_before, c_now) = split(&mut vc, before, t, row, c0);
            if before.is_some() || initial.is_some() {
                u.add(g, Mat::new(h_before, batch, n));
            }
            let bias = params.get(self.bias);
            T::launch(Forward {
                t,
                n,
                lens,
                bias,
                g,
                h_before,
                c_before,
                h: h_now,
                c: c_now,
                tanh_c: &mut vt[t * row..(t + 1) * row],
            });
        }
        tape.recycle(zero);
        for (v, data) in [(h, vh), (c, vc), (tanh_c, vt), (gates, vg)] {
            tape.put(v, data);
        }
        tape.record(
            h,
            Backward {
                layer: *self,
                x,
                h,
                c,
                tanh_c,
                gates,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        let gates = ['i', 'f', 'g', 'o']
            .iter()
            .enumerate()
            .map(|(k, &name)| Gate {
                name,
                var: gates,
                from: k * n,
            })
            .collect();
        States {
            h,
            c: Some(c),
            gates,
            direction,
        }
    }
}

/// Step `before` to read (the initial row when there is none) and step `t` to write.
pub(crate) fn split<'a, T>(
    all: &'a mut [T],
    before: Option<usize>,
    t: usize,
    row: usize,
    initial: &'a [T],
) -> (&'a [T], &'a mut [T]) {
    match before {
        None => (initial, &mut all[t * row..(t + 1) * row]),
        Some(b) if b < t => {
            let (left, right) = all.split_at_mut(t * row);
            (&left[b * row..(b + 1) * row], &mut right[..row])
        }
        Some(b) => {
            let (left, right) = all.split_at_mut(b * row);
            (&right[..row], &mut left[t * row..(t + 1) * row])
        }
    }
}

struct Backward {
    layer: Lstm,
    x: Var,
    h: Var,
    c: Var,
    tanh_c: Var,
    gates: Var,
    lens: Lens,
    initial: Option<(Var, Var)>,
    direction: Direction,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let (dh_out, dc_out, dg_out) = (
            tape.take_grad(self.h),
            tape.take_grad(self.c),
            tape.take_grad(self.gates),
        );
        if dh_out.is_none() && dc_out.is_none() && dg_out.is_none() {
            return;
        }
        let Shape {
            time,
            batch,
            dim: n,
        } = tape.shape(self.h);
        let row = batch * n;
        let mut dpre = tape.dirty(4 * row * time);
        let (mut dh, mut dc, zero) = (tape.zeros(row), tape.zeros(row), tape.zeros(row));
        let c0 = self.initial.map_or(&zero[..], |s| tape.get(s.1));
        let u = Recurrent::new(params.mat(self.layer.recurrent).t(), time);
        for t in self.direction.steps(time).rev() {
            for (to, out) in [(&mut dh, &dh_out), (&mut dc, &dc_out)] {
                if let Some(out) = out {
                    add(to, &out[t * row..(t + 1) * row]);
                }
            }
            let before = self.direction.before(t, time);
            let c_before = before.map_or(c0, |b| &tape.get(self.c)[b * row..(b + 1) * row]);
            let d = &mut dpre[t * 4 * row..(t + 1) * 4 * row];
            let extra = dg_out.as_ref().map(|v| &v[t * 4 * row..(t + 1) * 4 * row]);
            let gates = &tape.get(self.gates)[t * 4 * row..(t + 1) * 4 * row];
            let tanh_c = &tape.get(self.tanh_c)[t * row..(t + 1) * row];
            T::launch(Back {
                t,
                n,
                lens: &self.lens,
                gates,
                tanh_c,
                c_before,
                extra,
                dh: &mut dh,
                dc: &mut dc,
                d,
            });
            if before.is_some() || self.initial.is_some() {
                u.add(&mut dh, Mat::new(d, batch, 4 * n));
            }
        }
        if let Some((h0, c0)) = self.initial {
            for (v, d) in [(h0, &dh), (c0, &dc)] {
                if let Some(mut to) = tape.grad_to_add(v) {
                    add(&mut to, d);
                    tape.put_grad(v, to);
                }
            }
        }
        if let Some(mut dx) = tape.grad_to_add(self.x) {
            gemm(
                Into::Add,
                &mut dx,
                Mat::new(&dpre, time * batch, 4 * n),
                params.mat(self.layer.input).t(),
            );
            tape.put_grad(self.x, dx);
        }
        grads.bias(self.layer.bias, &dpre);
        let dpre = tape.keep(Shape::new(time, batch, 4 * n), dpre);
        grads.product(
            tape,
            self.layer.input,
            Rows::all(tape, self.x),
            Rows::all(tape, dpre),
        );
        recurrent_product(
            tape,
            grads,
            self.layer.recurrent,
            self.h,
            self.initial.map(|s| s.0),
            dpre,
            self.direction,
        );
        for v in [Some(dh), Some(dc), Some(zero), dh_out, dc_out, dg_out]
            .into_iter()
            .flatten()
        {
            tape.recycle(v);
        }
    }
}

pub(crate) fn add<T: Real>(to: &mut [T], from: &[T]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t += *f;
    }
}

/// Units `j..e` of gate `k` in a row of gates.
#[inline(always)]
fn gate<V: Lanes>(row: &[V::T], n: usize, k: usize, j: usize, e: usize) -> V {
    V::load(&row[k * n + j..k * n + e])
}

pub(crate) struct Forward<'a, T> {
    pub(crate) t: usize,
    pub(crate) n: usize,
    pub(crate) lens: &'a [usize],
    pub(crate) bias: &'a [T],
    pub(crate) g: &'a mut [T],
    pub(crate) h_before: &'a [T],
    pub(crate) c_before: &'a [T],
    pub(crate) h: &'a mut [T],
    pub(crate) c: &'a mut [T],
    pub(crate) tanh_c: &'a mut [T],
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.n;
        for (b, g) in self.g.chunks_exact_mut(4 * n).enumerate() {
            let row = b * n..(b + 1) * n;
            let (h, c, tanh_c) = (
                &mut self.h[row.clone()],
                &mut self.c[row.clone()],
                &mut self.tanh_c[row.clone()],
            );
            let c_before = &self.c_before[row.clone()];
            if self.t >= self.lens[b] {
                h.copy_from_slice(&self.h_before[row]);
                c.copy_from_slice(c_before);
                tanh_c.fill(T::ZERO);
                g.fill(T::ZERO);
                continue;
            }
            for j in (0..n).step_by(V::N) {
                let e = n.min(j + V::N);
                let i = gate::<V>(g, n, 0, j, e)
                    .add(gate(self.bias, n, 0, j, e))
                    .sigmoid();
                let f = gate::<V>(g, n, 1, j, e)
                    .add(gate(self.bias, n, 1, j, e))
                    .sigmoid();
                let a = gate::<V>(g, n, 2, j, e)
                    .add(gate(self.bias, n, 2, j, e))
                    .tanh();
                let o = gate::<V>(g, n, 3, j, e)
                    .add(gate(self.bias, n, 3, j, e))
                    .sigmoid();
                let cell = f.fma(V::load(&c_before[j..e]), i.mul(a));
                let squashed = cell.tanh();
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

pub(crate) struct Back<'a, T> {
    pub(crate) t: usize,
    pub(crate) n: usize,
    pub(crate) lens: &'a [usize],
    pub(crate) gates: &'a [T],
    pub(crate) tanh_c: &'a [T],
    pub(crate) c_before: &'a [T],
    pub(crate) extra: Option<&'a [T]>,
    pub(crate) dh: &'a mut [T],
    pub(crate) dc: &'a mut [T],
    pub(crate) d: &'a mut [T],
}

impl<T: Real> Kernel<T> for Back<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let n = self.n;
        let (zero, one, tiny) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::TINY));
        for (b, d) in self.d.chunks_exact_mut(4 * n).enumerate() {
            let (dh, dc) = (
                &mut self.dh[b * n..(b + 1) * n],
                &mut self.dc[b * n..(b + 1) * n],
            );
            if self.t >= self.lens[b] {
                // The state was carried unchanged: dh and dc pass through.
                d.fill(T::ZERO);
                continue;
            }
            let gates = &self.gates[b * 4 * n..(b + 1) * 4 * n];
            let (tanh_c, c_before) = (
                &self.tanh_c[b * n..(b + 1) * n],
                &self.c_before[b * n..(b + 1) * n],
            );
            let extra = self.extra.map(|v| &v[b * 4 * n..(b + 1) * 4 * n]);
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
