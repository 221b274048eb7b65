//! GRU over a whole sequence, the reset gate applied before the recurrent product (Cho et al. 2014).
//!
//! `[z r] = sigmoid(x[t] W + h[t-1] U + b)`, `n = tanh(x[t] Wn + (r h[t-1]) Un + bn)`,
//! `h[t] = (1 - z) n + z h[t-1]`.
//! `x` is (time, batch, inputs); `W` (inputs, 2 units), `U` (units, 2 units), `Wn` (inputs, units),
//! `Un` (units, units); `h`, `n` are (time, batch, units), `[z r]` (time, batch, 2 units).

use super::backward::Backward;
use super::kernels::{Gates, New};
use super::step::GruStep;
use super::weights::GruWeights;
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::{Lens, Side};
use crate::layers::recurrent::{Direction, Gate, RecurrentCell, RecurrentWeights, States};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm};

/// Gated recurrent unit.
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    /// Places of its weights.
    pub weights: GruWeights,
}

impl RecurrentCell for Gru {
    const CELL_STATE: bool = false;
    type Equations<T: Real> = GruStep<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Gru {
            weights: GruWeights::new(layout, name, inputs, units, init),
        }
    }

    fn units(&self) -> usize {
        self.weights.units
    }

    fn inputs(&self) -> usize {
        self.weights.input.rows
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> GruStep<T> {
        GruStep::new(params, &self.weights)
    }

    fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<(Var, Option<Var>)>,
        direction: Direction,
    ) -> States {
        let initial = initial.map(|state| state.0);
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, row) = (self.weights.units, batch * self.weights.units);
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
        gemm(Into::Set, &mut vg, all, params.mat(self.weights.input));
        gemm(Into::Set, &mut vn, all, params.mat(self.weights.input_new));
        let (u, un) = (
            RecurrentWeights::new(params.mat(self.weights.recurrent), time),
            RecurrentWeights::new(params.mat(self.weights.recurrent_new), time),
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
                bias: params.get(self.weights.bias),
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
                bias: params.get(self.weights.bias_new),
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
                weights: self.weights,
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
