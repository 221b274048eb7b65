//! GRU over a whole sequence, the reset gate applied before the recurrent product (Cho et al. 2014).
//!
//! `[z r] = sigmoid(x[t] W + h[t-1] U + b)`, `n = tanh(x[t] Wn + (r h[t-1]) Un + bn)`,
//! `h[t] = (1 - z) n + z h[t-1]`.
//! `x` is (time, batch, inputs); `W` (inputs, 2 units), `U` (units, 2 units), `Wn` (inputs, units),
//! `Un` (units, units); `h`, `n` are (time, batch, units), `[z r]` (time, batch, 2 units).
//!
//! Backward: `dz = dh (h[t-1] - n)`, `dn = dh (1 - z)`; `dq = dn (1 - n^2) Un^T` is the gradient of `r h[t-1]`;
//! `dr = dq h[t-1]`; `dh[t-1] = dh z + dq r + [dz z(1-z), dr r(1-r)] U^T`.

use super::Lens;
use super::gru_cell::{BackGates, BackNew, Gates, New};
use super::lstm::{add, split};
use super::recurrent::{Direction, Gate, Recurrent, States, recurrent_product};
use crate::Real;
use crate::batch::Side;
use crate::gemm::{Into, Mat, gemm};
use crate::grads::{Grads, Rows};
use crate::params::{Init, Layout, Params, Span};
use crate::tape::{Op, Shape, Tape, Var};

/// Gated recurrent unit.
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    /// (inputs, 2 units)
    pub input: Span,
    /// (inputs, units)
    pub input_new: Span,
    /// (units, 2 units)
    pub recurrent: Span,
    /// (units, units)
    pub recurrent_new: Span,
    /// (1, 2 units)
    pub bias: Span,
    /// (1, units)
    pub bias_new: Span,
    /// Hidden units.
    pub units: usize,
}

impl Gru {
    /// Weights start as `init`, biases at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        let mut map =
            |part: &str, rows, cols| layout.add_map(&format!("{name}.{part}"), rows, cols, init);
        Gru {
            input: map("input", inputs, 2 * units),
            input_new: map("input_new", inputs, units),
            recurrent: map("recurrent", units, 2 * units),
            recurrent_new: map("recurrent_new", units, units),
            bias: layout.add(&format!("{name}.bias"), 1, 2 * units, Init::Constant(0.0)),
            bias_new: layout.add(&format!("{name}.bias_new"), 1, units, Init::Constant(0.0)),
            units,
        }
    }

    /// Runs over all steps from `initial`, or from zero.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<Var>,
        direction: Direction,
    ) -> States {
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, row) = (self.units, batch * self.units);
        let inputs: Vec<Var> = [Some(x), initial].into_iter().flatten().collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let wants = tape.wants(h);
        let gates = tape.value(shape.with_dim(2 * n), wants);
        let new = tape.value(shape.with_dim(n), wants);
        let reset = tape.value(shape.with_dim(n), false);
        let (mut vh, mut vg, mut vn, mut vr) = (
            tape.take(h),
            tape.take(gates),
            tape.take(new),
            tape.take(reset),
        );

        let all = Mat::new(tape.get(x), shape.rows(), shape.dim);
        gemm(Into::Set, &mut vg, all, params.mat(self.input));
        gemm(Into::Set, &mut vn, all, params.mat(self.input_new));
        let (u, un) = (
            Recurrent::new(params.mat(self.recurrent), time),
            Recurrent::new(params.mat(self.recurrent_new), time),
        );
        let zero = tape.zeros(row);
        let h0 = initial.map_or(&zero[..], |h| tape.get(h));
        for t in direction.steps(time) {
            let before = direction.before(t, time);
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            let (g, a, q) = (
                &mut vg[t * 2 * row..(t + 1) * 2 * row],
                &mut vn[t * row..(t + 1) * row],
                &mut vr[t * row..(t + 1) * row],
            );
            let recur = before.is_some() || initial.is_some();
            if recur {
                u.add(g, Mat::new(h_before, batch, n));
            }
            T::launch(Gates {
                t,
                n,
                lens,
                bias: params.get(self.bias),
                g,
                before: h_before,
                q,
            });
            if recur {
                un.add(a, Mat::new(q, batch, n));
            }
            T::launch(New {
                t,
                n,
                lens,
                bias: params.get(self.bias_new),
                g,
                a,
                before: h_before,
                h: now,
            });
        }
        tape.recycle(zero);
        for (v, data) in [(h, vh), (gates, vg), (new, vn), (reset, vr)] {
            tape.put(v, data);
        }
        tape.record(
            h,
            Backward {
                layer: *self,
                x,
                h,
                gates,
                new,
                reset,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        let list = vec![
            Gate {
                name: 'z',
                var: gates,
                from: 0,
            },
            Gate {
                name: 'r',
                var: gates,
                from: n,
            },
            Gate {
                name: 'n',
                var: new,
                from: 0,
            },
        ];
        States {
            h,
            c: None,
            gates: list,
            direction,
            side: Side::Source,
        }
    }
}

struct Backward {
    layer: Gru,
    x: Var,
    h: Var,
    gates: Var,
    new: Var,
    reset: Var,
    lens: Lens,
    initial: Option<Var>,
    direction: Direction,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let outs = [
            tape.take_grad(self.h),
            tape.take_grad(self.gates),
            tape.take_grad(self.new),
        ];
        if outs.iter().all(Option::is_none) {
            return;
        }
        let layer = &self.layer;
        let Shape {
            time,
            batch,
            dim: n,
        } = tape.shape(self.h);
        let row = batch * n;
        let (mut dg, mut da) = (tape.dirty(2 * row * time), tape.dirty(row * time));
        let (mut dh, mut dq, zero) = (tape.zeros(row), tape.zeros(row), tape.zeros(row));
        let h0 = self.initial.map_or(&zero[..], |h| tape.get(h));
        let (u, un) = (
            Recurrent::new(params.mat(layer.recurrent).t(), time),
            Recurrent::new(params.mat(layer.recurrent_new).t(), time),
        );
        for t in self.direction.steps(time).rev() {
            let (one, two) = (t * row..(t + 1) * row, t * 2 * row..(t + 1) * 2 * row);
            if let Some(out) = &outs[0] {
                add(&mut dh, &out[one.clone()]);
            }
            let before = self.direction.before(t, time);
            let h_before = before.map_or(h0, |b| &tape.get(self.h)[b * row..(b + 1) * row]);
            let (g, a) = (
                &tape.get(self.gates)[two.clone()],
                &tape.get(self.new)[one.clone()],
            );
            let (dg, da) = (&mut dg[two.clone()], &mut da[one.clone()]);
            let (more_g, more_a) = (
                outs[1].as_ref().map(|v| &v[two.clone()]),
                outs[2].as_ref().map(|v| &v[one.clone()]),
            );
            T::launch(BackNew {
                t,
                n,
                lens: &self.lens,
                g,
                a,
                before: h_before,
                more_g,
                more_a,
                dh: &mut dh,
                dg,
                da,
            });
            dq.fill(T::ZERO);
            un.add(&mut dq, Mat::new(da, batch, n));
            T::launch(BackGates {
                t,
                n,
                lens: &self.lens,
                g,
                before: h_before,
                dq: &dq,
                dh: &mut dh,
                dg,
            });
            if before.is_some() || self.initial.is_some() {
                u.add(&mut dh, Mat::new(dg, batch, 2 * n));
            }
        }
        if let Some(h0) = self.initial
            && let Some(mut to) = tape.grad_to_add(h0)
        {
            add(&mut to, &dh);
            tape.put_grad(h0, to);
        }
        if let Some(mut dx) = tape.grad_to_add(self.x) {
            gemm(
                Into::Add,
                &mut dx,
                Mat::new(&dg, time * batch, 2 * n),
                params.mat(layer.input).t(),
            );
            gemm(
                Into::Add,
                &mut dx,
                Mat::new(&da, time * batch, n),
                params.mat(layer.input_new).t(),
            );
            tape.put_grad(self.x, dx);
        }
        grads.bias(layer.bias, &dg);
        grads.bias(layer.bias_new, &da);
        let (dg, da) = (
            tape.keep(Shape::new(time, batch, 2 * n), dg),
            tape.keep(Shape::new(time, batch, n), da),
        );
        grads.product(
            tape,
            layer.input,
            Rows::all(tape, self.x),
            Rows::all(tape, dg),
        );
        grads.product(
            tape,
            layer.input_new,
            Rows::all(tape, self.x),
            Rows::all(tape, da),
        );
        recurrent_product(
            tape,
            grads,
            layer.recurrent,
            self.h,
            self.initial,
            dg,
            self.direction,
        );
        grads.product(
            tape,
            layer.recurrent_new,
            Rows::all(tape, self.reset),
            Rows::all(tape, da),
        );
        for v in [dh, dq, zero].into_iter().chain(outs.into_iter().flatten()) {
            tape.recycle(v);
        }
    }
}
