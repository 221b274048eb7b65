//! Backward through an RNN layer: `dpre = dh (1 - h^2)`, `dh[t-1] = dpre U^T`, and one product at the end for each weight.

use super::kernels::Back;
use super::weights::RnnWeights;
use crate::autodiff::{Grads, Op, Params, Rows, Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::recurrent::{Direction, RecurrentWeights, recurrent_product};
use crate::layers::slices::add;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm};

pub(super) struct Backward {
    pub weights: RnnWeights,
    pub x: Var,
    pub h: Var,
    pub lens: Lens,
    pub initial: Option<Var>,
    pub direction: Direction,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let Some(dh_out) = tape.take_grad(self.h) else {
            return;
        };
        let Shape {
            time,
            batch,
            dim: n,
        } = tape.shape(self.h);
        let row = batch * n;
        let mut dpre = tape.dirty(row * time);
        let mut dh = tape.zeros(row);
        let u = RecurrentWeights::new(params.mat(self.weights.recurrent).t(), time);
        for t in self.direction.steps(time).rev() {
            let now = t * row..(t + 1) * row;
            add(&mut dh, &dh_out[now.clone()]);
            let d = &mut dpre[now.clone()];
            T::launch(Back {
                t,
                n,
                lens: &self.lens,
                h: &tape.get(self.h)[now],
                dh: &mut dh,
                d,
            });
            if self.direction.before(t, time).is_some() || self.initial.is_some() {
                u.add(&mut dh, Mat::new(d, batch, n));
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
                Mat::new(&dpre, time * batch, n),
                params.mat(self.weights.input).t(),
            );
            tape.put_grad(self.x, dx);
        }
        grads.bias(self.weights.bias, &dpre);
        let dpre = tape.keep(Shape::new(time, batch, n), dpre);
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
            self.initial,
            dpre,
            self.direction,
        );
        tape.recycle(dh);
        tape.recycle(dh_out);
    }
}
