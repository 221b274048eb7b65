//! Backward through an RNN layer: `dpre = dh (1 - h^2)`, `dh[t-1] = dpre U^T`, and one product at the end for each weight.

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
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let Some(dh_out) = tape.take_grad(self.h) else {
            return;
        };
        let (over, shape) = (&self.over, tape.shape(self.h));
        let (batch, n, row) = (shape.batch, shape.dim, shape.batch * shape.dim);
        let (mut dpre, mut dh) = (tape.dirty(shape.len()), tape.zeros(row));
        let u = self.weights.transposed(params, shape.time);
        for (t, before) in over.steps(shape).rev() {
            let now = t * row..(t + 1) * row;
            add(&mut dh, &dh_out[now.clone()]);
            let d = &mut dpre[now.clone()];
            T::launch(Back {
                step: StepRows {
                    t,
                    n,
                    lens: &over.lens,
                },
                h: &tape.get(self.h)[now],
                dh: &mut dh,
                d,
            });
            if over.recurs(before) {
                u.add(&mut dh, Mat::new(d, batch, n));
            }
        }
        over.add_initial_grads(tape, &dh, &[]);
        self.weights
            .backward(tape, params, grads, over, self.h, dpre);
        tape.recycle(dh);
        tape.recycle(dh_out);
    }
}
