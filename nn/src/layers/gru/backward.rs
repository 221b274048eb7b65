//! Backward through a GRU: `dz = dh (h[t-1] - n)`, `dn = dh (1 - z)`; `dq = dn (1 - n^2) Un^T` is the gradient of
//! `r h[t-1]`; `dr = dq h[t-1]`; `dh[t-1] = dh z + dq r + [dz z(1-z), dr r(1-r)] U^T`.

use super::kernels::{BackGates, BackNew};
use super::weights::GruWeights;
use crate::autodiff::{Grads, Op, Params, Rows, Tape, Var};
use crate::layers::recurrent::{StepRows, Unrolled};
use crate::layers::slices::add;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

pub(super) struct Backward {
    pub weights: GruWeights,
    pub over: Unrolled,
    pub h: Var,
    pub gates: Var,
    pub new: Var,
    pub reset: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let outs = [self.h, self.gates, self.new].map(|v| tape.take_grad(v));
        if outs.iter().all(Option::is_none) {
            return;
        }
        let (weights, over, shape) = (&self.weights, &self.over, tape.shape(self.h));
        let (batch, n, row) = (shape.batch, shape.dim, shape.batch * shape.dim);
        let (mut dg, mut da) = (tape.dirty(2 * shape.len()), tape.dirty(shape.len()));
        let (mut dh, mut dq, zero) = (tape.zeros(row), tape.zeros(row), tape.zeros(row));
        let h0 = over.h0.map_or(&zero[..], |h| tape.get(h));
        let [u, un] = [weights.gates, weights.new].map(|w| w.transposed(params, shape.time));
        for (t, before) in over.steps(shape).rev() {
            let (one, two) = (t * row..(t + 1) * row, t * 2 * row..(t + 1) * 2 * row);
            if let Some(out) = &outs[0] {
                add(&mut dh, &out[one.clone()]);
            }
            let h_before = before.map_or(h0, |b| &tape.get(self.h)[b * row..(b + 1) * row]);
            let g = &tape.get(self.gates)[two.clone()];
            let (dg, da) = (&mut dg[two.clone()], &mut da[one.clone()]);
            let step = StepRows {
                t,
                n,
                lens: &over.lens,
            };
            T::launch(BackNew {
                step,
                g,
                a: &tape.get(self.new)[one.clone()],
                before: h_before,
                more_g: outs[1].as_ref().map(|v| &v[two]),
                more_a: outs[2].as_ref().map(|v| &v[one]),
                dh: &mut dh,
                dg,
                da,
            });
            dq.fill(T::ZERO);
            un.add(&mut dq, Mat::new(da, batch, n));
            T::launch(BackGates {
                step,
                g,
                before: h_before,
                dq: &dq,
                dh: &mut dh,
                dg,
            });
            if over.recurs(before) {
                u.add(&mut dh, Mat::new(dg, batch, 2 * n));
            }
        }
        over.add_initial_grads(tape, &dh, &[]);
        weights
            .gates
            .backward(tape, params, grads, over, self.h, dg);
        let da = weights.new.input.backward(tape, params, grads, over.x, da);
        let (reset, da) = (Rows::all(tape, self.reset), Rows::all(tape, da));
        grads.product(tape, weights.new.recurrent, reset, da);
        for v in [dh, dq, zero].into_iter().chain(outs.into_iter().flatten()) {
            tape.recycle(v);
        }
    }
}
