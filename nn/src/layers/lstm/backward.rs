//! `[i f g o] = x[t] W + h[t-1] U + b`, then `i, f, o` through the sigmoid and `g` through tanh;
//! `c[t] = f c[t-1] + i g`, `h[t] = o tanh(c[t])`.
//! `x` is (time, batch, inputs), `W` (inputs, 4 units), `U` (units, 4 units), `b` (4 units);
//! `h`, `c` are (time, batch, units), the gates (time, batch, 4 units) in the order i f g o.

use super::kernels::Back;
use super::weights::LstmWeights;
use crate::autodiff::{Grads, Op, Params, Rows, Shape, Tape, Var, map_back};
use crate::batch::Lens;
use crate::layers::recurrent::{Direction, RecurrentWeights, recurrent_product};
use crate::layers::slices::add;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

pub(super) struct Backward {
    pub weights: LstmWeights,
    pub x: Var,
    pub h: Var,
    pub c: Var,
    pub tanh_c: Var,
    pub gates: Var,
    pub lens: Lens,
    pub initial: Option<(Var, Var)>,
    pub direction: Direction,
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
        let u = RecurrentWeights::new(params.mat(self.weights.recurrent).t(), time);
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
            map_back(tape, params, self.weights.input, dpre, &mut dx);
            tape.put_grad(self.x, dx);
        }
        grads.bias(self.weights.bias, &dpre);
        let dpre = tape.keep(Shape::new(time, batch, 4 * n), dpre);
        grads.product(
            tape,
            self.weights.input,
            Rows::all(tape, self.x),
            Rows::all(tape, dpre),
        );
        recurrent_product(
            tape,
            grads,
            self.weights.recurrent,
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
