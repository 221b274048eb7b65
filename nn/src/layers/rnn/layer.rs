//! Vanilla recurrent layer (Elman): `h[t] = tanh(x[t] W + h[t-1] U + b)`.
//!
//! `x` is (time, batch, inputs), `W` (inputs, units), `U` (units, units), `h` (time, batch, units).

use super::backward::Backward;
use super::kernels::Forward;
use super::step::RnnStep;
use super::weights::RnnWeights;
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::{Lens, Side};
use crate::layers::recurrent::{Direction, RecurrentCell, RecurrentWeights, States};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm};

/// Vanilla recurrent layer.
#[derive(Clone, Copy, Debug)]
pub struct Rnn {
    /// Places of its weights.
    pub weights: RnnWeights,
}

impl RecurrentCell for Rnn {
    const CELL_STATE: bool = false;
    type Equations<T: Real> = RnnStep<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Rnn {
            weights: RnnWeights::new(layout, name, inputs, units, init),
        }
    }

    fn units(&self) -> usize {
        self.weights.units
    }

    fn inputs(&self) -> usize {
        self.weights.input.rows
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> RnnStep<T> {
        RnnStep::new(params, &self.weights)
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
        let mut vh = tape.take(h);
        gemm(
            Into::Set,
            &mut vh,
            Mat::new(tape.get(x), shape.rows(), shape.dim),
            params.mat(self.weights.input),
        );
        let u = RecurrentWeights::new(params.mat(self.weights.recurrent), time);
        let zero = tape.zeros(row);
        let h0 = initial.map_or(&zero[..], |h| tape.get(h));
        for t in direction.steps(time) {
            let before = direction.before(t, time);
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            if before.is_some() || initial.is_some() {
                u.add(now, Mat::new(h_before, batch, n));
            }
            T::launch(Forward {
                t,
                n,
                lens,
                bias: params.get(self.weights.bias),
                before: h_before,
                h: now,
            });
        }
        tape.recycle(zero);
        tape.put(h, vh);
        tape.record(
            h,
            Backward {
                weights: self.weights,
                x,
                h,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        States {
            h,
            c: None,
            gates: Vec::new(),
            direction,
            side: Side::Source,
        }
    }
}
