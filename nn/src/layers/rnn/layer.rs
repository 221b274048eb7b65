//! Vanilla recurrent layer (Elman): `h[t] = tanh(x[t] W + h[t-1] U + b)`.
//!
//! `x` is (time, batch, inputs), `W` (inputs, units), `U` (units, units), `h` (time, batch, units).

use super::backward::Backward;
use super::kernels::Forward;
use super::narrow::NarrowRnn;
use super::step::RnnStep;
use crate::autodiff::{Init, Layout, Params, Tape};
use crate::layers::recurrent::{GateWeights, RecurrentCell, States, StepRows, Unrolled};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// Vanilla recurrent layer.
#[derive(Clone, Copy, Debug)]
pub struct Rnn {
    /// Its weights.
    pub weights: GateWeights,
}

impl RecurrentCell for Rnn {
    const CELL_STATE: bool = false;
    type Equations<T: Real> = RnnStep<T>;
    type Narrow<T: Real> = NarrowRnn<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Rnn {
            weights: GateWeights::new(layout, name, inputs, [units, 1], init),
        }
    }

    fn gates(&self) -> &GateWeights {
        &self.weights
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> RnnStep<T> {
        RnnStep::new(params, &self.weights)
    }

    fn narrow<T: Real>(&self, params: &Params<T>) -> NarrowRnn<T> {
        NarrowRnn::new(params, &self.weights)
    }

    fn unroll<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, over: Unrolled) -> States {
        let (n, weights) = (self.units(), self.weights);
        let h = over.output(tape, n);
        let (shape, mut vh) = (tape.shape(h), tape.take(h));
        weights.map_input(tape, params, over.x, &mut vh);
        let (u, row) = (weights.forward(params, shape.time), shape.batch * n);
        let zero = tape.zeros(row);
        let h0 = over.h0.map_or(&zero[..], |h| tape.get(h));
        for (t, before) in over.steps(shape) {
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            if over.recurs(before) {
                u.add(now, Mat::new(h_before, shape.batch, n));
            }
            T::launch(Forward {
                step: StepRows {
                    t,
                    n,
                    lens: &over.lens,
                },
                bias: weights.input.bias_in(params),
                before: h_before,
                h: now,
            });
        }
        tape.recycle(zero);
        tape.put(h, vh);
        let states = States::new(h, None, Vec::new(), over.direction);
        tape.record(h, Backward { weights, over, h });
        states
    }
}
