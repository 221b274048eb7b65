//! Backward through a GRU: `dz = dh (h[t-1] - n)`, `dn = dh (1 - z)`; `dq = dn (1 - n^2) Un^T` is the gradient of
//! `r h[t-1]`; `dr = dq h[t-1]`; `dh[t-1] = dh z + dq r + [dz z(1-z), dr r(1-r)] U^T`.

use super::kernels::{BackGates, BackNew};
use super::weights::GruWeights;
use crate::autodiff::{Grads, Op, Params, Rows, Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::recurrent::{Direction, RecurrentWeights, recurrent_product};
use crate::layers::slices::add;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm};

pub(super) struct Backward {
    pub weights: GruWeights,
    pub x: Var,
    pub h: Var,
    pub gates: Var,
    pub new: Var,
    pub reset: Var,
    pub lens: Lens,
    pub initial: Option<Var>,
    pub direction: Direction,
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
        let layer = &self.weights;
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
            RecurrentWeights::new(params.mat(layer.recurrent).t(), time),
            RecurrentWeights::new(params.mat(layer.recurrent_new).t(), time),
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
