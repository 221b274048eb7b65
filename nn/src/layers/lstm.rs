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
use super::lstm_cell::{Back, Forward};
use super::recurrent::{Direction, Gate, Recurrent, States, recurrent_product};
use crate::Real;
use crate::batch::Side;
use crate::gemm::Mat;
use crate::grads::{Grads, Rows};
use crate::packs::{map, map_back};
use crate::params::{Init, Layout, Params, Span};
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

        let rows = Mat::new(tape.get(x), shape.rows(), shape.dim);
        map(tape, params, self.input, None, rows, &mut vg);
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
            side: Side::Source,
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
            let dpre = Mat::new(&dpre, time * batch, 4 * n);
            map_back(tape, params, self.layer.input, dpre, &mut dx);
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
