//! Backward through an LSTM: `dc += dh o (1 - tanh(c[t])^2)`; `[di df dg do] = [dc g, dc c[t-1], dc i, dh tanh(c[t])]`,
//! each through its activation, is `dpre`; `dc[t-1] = dc f`, `dh[t-1] = dpre U^T`.

use super::kernels::Back;
use crate::autodiff::{Grads, Op, Params, Tape, Var};
use crate::layers::recurrent::{GateWeights, StepRows, Unrolled};
use crate::layers::slices::add;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

pub(super) struct Backward {
    pub weights: GateWeights,
    pub over: Unrolled,
    pub h: Var,
    pub c: Var,
    pub tanh_c: Var,
    pub gates: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let outs = [self.h, self.c, self.gates].map(|v| tape.take_grad(v));
        if outs.iter().all(Option::is_none) {
            return;
        }
        let (over, shape) = (&self.over, tape.shape(self.h));
        let (batch, n, row) = (shape.batch, shape.dim, shape.batch * shape.dim);
        let mut dpre = tape.dirty(4 * shape.len());
        let (mut dh, mut dc, zero) = (tape.zeros(row), tape.zeros(row), tape.zeros(row));
        let c0 = over.c0.map_or(&zero[..], |c| tape.get(c));
        let u = self.weights.transposed(params, shape.time);
        for (t, before) in over.steps(shape).rev() {
            let (now, wide) = (t * row..(t + 1) * row, t * 4 * row..(t + 1) * 4 * row);
            for (to, out) in [(&mut dh, &outs[0]), (&mut dc, &outs[1])] {
                if let Some(out) = out {
                    add(to, &out[now.clone()]);
                }
            }
            let d = &mut dpre[wide.clone()];
            T::launch(Back {
                step: StepRows {
                    t,
                    n,
                    lens: &over.lens,
                },
                gates: &tape.get(self.gates)[wide.clone()],
                tanh_c: &tape.get(self.tanh_c)[now],
                c_before: before.map_or(c0, |b| &tape.get(self.c)[b * row..(b + 1) * row]),
                extra: outs[2].as_ref().map(|v| &v[wide]),
                dh: &mut dh,
                dc: &mut dc,
                d,
            });
            if over.recurs(before) {
                u.add(&mut dh, Mat::new(d, batch, 4 * n));
            }
        }
        over.add_initial_grads(tape, &dh, &dc);
        self.weights
            .backward(tape, params, grads, over, self.h, dpre);
        for v in [dh, dc, zero].into_iter().chain(outs.into_iter().flatten()) {
            tape.recycle(v);
        }
    }
}
