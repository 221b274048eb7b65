//! GRU over a whole sequence, the reset gate applied before the recurrent product (Cho et al. 2014).
//!
//! `[z r] = sigmoid(x[t] W + h[t-1] U + b)`, `n = tanh(x[t] Wn + (r h[t-1]) Un + bn)`,
//! `h[t] = (1 - z) n + z h[t-1]`.
//! `x` is (time, batch, inputs); `W` (inputs, 2 units), `U` (units, 2 units), `Wn` (inputs, units),
//! `Un` (units, units); `h`, `n` are (time, batch, units), `[z r]` (time, batch, 2 units).

use super::backward::Backward;
use super::kernels::{Gates, New};
use super::narrow::NarrowGru;
use super::step::GruStep;
use super::weights::GruWeights;
use crate::autodiff::{Init, Layout, Params, Tape};
use crate::layers::recurrent::{Gate, GateWeights, RecurrentCell, States, StepRows, Unrolled};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// Gated recurrent unit.
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    /// Its weights.
    pub weights: GruWeights,
}

impl RecurrentCell for Gru {
    const CELL_STATE: bool = false;
    type Equations<T: Real> = GruStep<T>;
    type Narrow<T: Real> = NarrowGru<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Gru {
            weights: GruWeights::new(layout, name, inputs, units, init),
        }
    }

    fn gates(&self) -> &GateWeights {
        &self.weights.gates
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> GruStep<T> {
        GruStep::new(params, &self.weights)
    }

    fn narrow<T: Real>(&self, params: &Params<T>) -> NarrowGru<T> {
        NarrowGru::new(params, &self.weights)
    }

    fn unroll<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, over: Unrolled) -> States {
        let (n, weights) = (self.units(), self.weights);
        let h = over.output(tape, n);
        let (shape, wants) = (tape.shape(h), tape.wants(h));
        let gates = tape.value(shape.with_dim(2 * n), wants);
        let new = tape.value(shape, wants);
        let reset = tape.value(shape, false);
        let [mut vh, mut vg, mut vn, mut vr] = [h, gates, new, reset].map(|v| tape.take(v));

        weights.gates.map_input(tape, params, over.x, &mut vg);
        weights.new.map_input(tape, params, over.x, &mut vn);
        let [u, un] = [weights.gates, weights.new].map(|w| w.forward(params, shape.time));
        let (batch, row) = (shape.batch, shape.batch * n);
        let zero = tape.zeros(row);
        let h0 = over.h0.map_or(&zero[..], |h| tape.get(h));
        for (t, before) in over.steps(shape) {
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            let g = &mut vg[t * 2 * row..(t + 1) * 2 * row];
            let [a, q] = [&mut vn, &mut vr].map(|v| &mut v[t * row..(t + 1) * row]);
            let step = StepRows {
                t,
                n,
                lens: &over.lens,
            };
            if over.recurs(before) {
                u.add(g, Mat::new(h_before, batch, n));
            }
            T::launch(Gates {
                step,
                bias: weights.gates.input.bias_in(params),
                g,
                before: h_before,
                q,
            });
            if over.recurs(before) {
                un.add(a, Mat::new(q, batch, n));
            }
            T::launch(New {
                step,
                bias: weights.new.input.bias_in(params),
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
        let mut list = Gate::list("zr", gates, n);
        list.extend(Gate::list("n", new, n));
        let states = States::new(h, None, list, over.direction);
        tape.record(
            h,
            Backward {
                weights,
                over,
                h,
                gates,
                new,
                reset,
            },
        );
        states
    }
}
