//! LSTM over a whole sequence.

use super::backward::Backward;
use super::kernels::Forward;
use super::step::LstmStep;
use super::weights::LstmWeights;
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var, map};
use crate::batch::{Lens, Side};
use crate::layers::recurrent::{Direction, Gate, RecurrentCell, RecurrentWeights, States};
use crate::layers::slices::split;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// Long short-term memory.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// Places of its weights.
    pub weights: LstmWeights,
}

impl RecurrentCell for Lstm {
    const CELL_STATE: bool = true;
    type Equations<T: Real> = LstmStep<T>;

    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Lstm {
            weights: LstmWeights::new(layout, name, inputs, units, init),
        }
    }

    fn units(&self) -> usize {
        self.weights.units
    }

    fn inputs(&self) -> usize {
        self.weights.input.rows
    }

    fn equations<T: Real>(&self, params: &Params<T>) -> LstmStep<T> {
        LstmStep::new(params, &self.weights)
    }

    fn set_forget_bias<T: Real>(&self, params: &mut Params<T>, value: f64) {
        let units = self.weights.units;
        params.get_mut(self.weights.bias)[units..2 * units].fill(T::of(value));
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
        let initial = initial.and_then(|(h, c)| Some((h, c?)));
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, inputs) = (
            self.weights.units,
            &[Some(x), initial.map(|s| s.0), initial.map(|s| s.1)],
        );
        let inputs: Vec<Var> = inputs.iter().flatten().copied().collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let wants = tape.wants(h);
        let c = tape.value(shape.with_dim(n), wants);
        let tanh_c = tape.value(shape.with_dim(n), false);
        let gates = tape.value(shape.with_dim(4 * n), wants);
        let (mut vh, mut vc, mut vt, mut vg) = (
            tape.take(h),
            tape.take(c),
            tape.take(tanh_c),
            tape.take(gates),
        );

        let rows = Mat::new(tape.get(x), shape.rows(), shape.dim);
        map(tape, params, self.weights.input, None, rows, &mut vg);
        let u = RecurrentWeights::new(params.mat(self.weights.recurrent), time);
        let zero = tape.zeros(batch * n);
        let (h0, c0) = initial.map_or((&zero[..], &zero[..]), |(h, c)| (tape.get(h), tape.get(c)));
        let row = batch * n;
        for t in direction.steps(time) {
            let g = &mut vg[t * 4 * row..(t + 1) * 4 * row];
            let before = direction.before(t, time);
            let (h_before, h_now) = split(&mut vh, before, t, row, h0);
            let (c_before, c_now) = split(&mut vc, before, t, row, c0);
            if before.is_some() || initial.is_some() {
                u.add(g, Mat::new(h_before, batch, n));
            }
            let bias = params.get(self.weights.bias);
            T::launch(Forward {
                t,
                n,
                lens,
                bias,
                g,
                h_before,
                c_before,
                h: h_now,
                c: c_now,
                tanh_c: &mut vt[t * row..(t + 1) * row],
            });
        }
        tape.recycle(zero);
        for (v, data) in [(h, vh), (c, vc), (tanh_c, vt), (gates, vg)] {
            tape.put(v, data);
        }
        tape.record(
            h,
            Backward {
                weights: self.weights,
                x,
                h,
                c,
                tanh_c,
                gates,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        let gates = ['i', 'f', 'g', 'o']
            .iter()
            .enumerate()
            .map(|(k, &name)| Gate {
                name,
                var: gates,
                from: k * n,
            })
            .collect();
        States {
            h,
            c: Some(c),
            gates,
            direction,
            side: Side::Source,
        }
    }
}
