//! LSTM over a whole sequence.
//!
//! `[i f g o] = x[t] W + h[t-1] U + b`, then `i, f, o` through the sigmoid and `g` through tanh;
//! `c[t] = f c[t-1] + i g`, `h[t] = o tanh(c[t])`.
//! `x` is (time, batch, inputs), `W` (inputs, 4 units), `U` (units, 4 units), `b` (4 units);
//! `h`, `c` are (time, batch, units), the gates (time, batch, 4 units) in the order i f g o.

use super::backward::Backward;
use super::hidden::hidden_states;
use super::kernels::Forward;
use super::narrow::NarrowLstm;
use super::step::LstmStep;
use crate::autodiff::{Init, Layout, Params, Tape};
use crate::layers::alike::{Alike, spread};
use crate::layers::recurrent::{
    Gate, GateWeights, HiddenStates, RecurrentCell, States, StepRows, Unrolled,
};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// Long short-term memory.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// Its weights.
    pub weights: GateWeights,
}

impl RecurrentCell for Lstm {
    const CELL_STATE: bool = true;
    type Equations<T: Real> = LstmStep<T>;
    type Narrow<T: Real> = NarrowLstm<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Lstm {
            weights: GateWeights::new(layout, name, inputs, [units, 4], init),
        }
    }

    fn gates(&self) -> &GateWeights {
        &self.weights
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> LstmStep<T> {
        LstmStep::new(params, &self.weights)
    }

    fn narrow<T: Real>(&self, params: &Params<T>) -> NarrowLstm<T> {
        NarrowLstm::new(params, &self.weights)
    }

    fn set_forget_bias<T: Real>(&self, params: &mut Params<T>, value: f64) {
        let units = self.units();
        if let Some(bias) = self.weights.input.bias {
            params.get_mut(bias)[units..2 * units].fill(T::of(value));
        }
    }

    fn hidden_states<T: Real>() -> Option<HiddenStates<T>> {
        Some(hidden_states)
    }

    fn unroll<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, over: Unrolled) -> States {
        let (n, weights) = (self.units(), self.weights);
        let h = over.output(tape, n);
        let (shape, wants) = (tape.shape(h), tape.wants(h));
        let c = tape.value(shape, wants);
        let tanh_c = tape.value(shape, false);
        let gates = tape.value(shape.with_dim(4 * n), wants);
        let [mut vh, mut vc, mut vt, mut vg] = [h, c, tanh_c, gates].map(|v| tape.take(v));

        weights.map_input(tape, params, over.x, &mut vg);
        let (u, row) = (weights.forward(params, shape.time), shape.batch * n);
        let zero = tape.zeros(row);
        let [h0, c0] = [over.h0, over.c0].map(|v| v.map_or(&zero[..], |v| tape.get(v)));
        let alike = Alike::of(tape, over.x);
        // As long as all items have read the same, one of them is computed.
        let mut shared = alike.any() && over.starts_alike(n, h0, c0);
        for (t, before) in over.steps(shape) {
            shared &= alike.at(t);
            let items = if shared { 1 } else { shape.batch };
            let g = &mut vg[t * 4 * row..(t + 1) * 4 * row];
            let (h_before, h_now) = split(&mut vh, before, t, row, h0);
            let (c_before, c_now) = split(&mut vc, before, t, row, c0);
            let tanh_now = &mut vt[t * row..(t + 1) * row];
            if over.recurs(before) {
                let g = &mut g[..items * 4 * n];
                u.add(g, Mat::new(h_before, items, n));
            }
            T::launch(Forward {
                step: StepRows {
                    t,
                    n,
                    lens: &over.lens,
                },
                bias: weights.input.bias_in(params),
                g: &mut g[..items * 4 * n],
                h_before,
                c_before,
                h: h_now,
                c: c_now,
                tanh_c: tanh_now,
            });
            if shared {
                spread(g, 4 * n);
                for rows in [h_now, c_now, tanh_now] {
                    spread(rows, n);
                }
            }
        }
        tape.recycle(zero);
        for (v, data) in [(h, vh), (c, vc), (tanh_c, vt), (gates, vg)] {
            tape.put(v, data);
        }
        let states = States::new(h, Some(c), Gate::list("ifgo", gates, n), over.direction);
        tape.record(
            h,
            Backward {
                weights,
                over,
                h,
                c,
                tanh_c,
                gates,
            },
        );
        states
    }
}
