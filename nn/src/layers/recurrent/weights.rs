//! The weights of a recurrent layer, products with them, and their gradients.

use super::packed_map::PackedMap;
use super::states::Direction;
use super::unrolled::Unrolled;
use crate::autodiff::{Grads, Init, Layout, Params, Rows, Shape, Span, Tape, Var};
use crate::layers::alike::map_steps;
use crate::layers::dense::Dense;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, Packed, gemm, gemm_packed};

/// From input and state to gates: `x W + h U + b`.
#[derive(Clone, Copy, Debug)]
pub struct GateWeights {
    /// `W` (inputs, gates units) and `b` (1, gates units).
    pub input: Dense,
    /// `U`, (units, gates units)
    pub recurrent: Span,
}

impl GateWeights {
    /// The weights of this many gates start as `init`, biases at zero.
    pub(in crate::layers) fn new(
        layout: &mut Layout,
        name: &str,
        inputs: usize,
        [units, gates]: [usize; 2],
        init: Init,
    ) -> Self {
        let columns = gates * units;
        let weight = layout.add_map(&format!("{name}.input"), inputs, columns, init);
        let recurrent = layout.add_map(&format!("{name}.recurrent"), units, columns, init);
        let bias = layout.add(&format!("{name}.bias"), 1, columns, Init::Constant(0.0));
        GateWeights {
            input: Dense {
                weight,
                bias: Some(bias),
            },
            recurrent,
        }
    }

    /// Hidden units.
    pub fn units(&self) -> usize {
        self.recurrent.rows
    }

    /// `g = x W` for all steps.
    pub(in crate::layers) fn map_input<T: Real>(
        &self,
        tape: &Tape<T>,
        params: &Params<T>,
        x: Var,
        g: &mut [T],
    ) {
        map_steps(tape, params, self.input.weight, None, x, g);
    }

    /// `U` for the forward pass over a sequence.
    pub(in crate::layers) fn forward<'p, T: Real>(
        &self,
        params: &'p Params<T>,
        time: usize,
    ) -> RecurrentWeights<'p, T> {
        RecurrentWeights::new(params.mat(self.recurrent), time)
    }

    /// `U^T` for the backward pass over a sequence.
    pub(in crate::layers) fn transposed<'p, T: Real>(
        &self,
        params: &'p Params<T>,
        time: usize,
    ) -> RecurrentWeights<'p, T> {
        RecurrentWeights::new(params.mat(self.recurrent).t(), time)
    }

    /// Adds the gradients of `x`, `W`, `U` and `b`, given the gradient of the gates before their activations.
    pub(in crate::layers) fn backward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        grads: &mut Grads<T>,
        over: &Unrolled,
        h: Var,
        dpre: Vec<T>,
    ) {
        let dpre = self.input.backward(tape, params, grads, over.x, dpre);
        let (span, direction) = (self.recurrent, over.direction);
        recurrent_product(tape, grads, span, h, over.h0, dpre, direction);
    }

    /// `W` and `U`, packed once, and `b`.
    pub(in crate::layers) fn of_a_step<T: Real>(
        &self,
        params: &Params<T>,
    ) -> ([PackedMap<T>; 2], Vec<T>) {
        let maps = [self.input.weight, self.recurrent];
        let bias = self.input.bias_in(params).to_vec();
        (maps.map(|span| PackedMap::new(params, span)), bias)
    }
}

/// Recurrent weights, packed when the sequence is long enough to pay for it.
pub(crate) enum RecurrentWeights<'a, T> {
    Packed(Packed<T>),
    Plain(Mat<'a, T>),
}

impl<'a, T: Real> RecurrentWeights<'a, T> {
    pub(crate) fn new(weights: Mat<'a, T>, time: usize) -> Self {
        if time < 4 {
            return RecurrentWeights::Plain(weights);
        }
        let mut packed = Packed::default();
        packed.pack(weights);
        RecurrentWeights::Packed(packed)
    }

    /// `c += a w`
    pub(crate) fn add(&self, c: &mut [T], a: Mat<T>) {
        match self {
            RecurrentWeights::Packed(w) => gemm_packed(Into::Add, c, a, w),
            RecurrentWeights::Plain(w) => gemm(Into::Add, c, a, *w),
        }
    }
}

/// The gradient of recurrent weights: `sum_t before(t)^T dpre[t]`, where `before` is the
/// previous row of `states`, or of `initial` at the first step.
pub(crate) fn recurrent_product<T: Real>(
    tape: &Tape<T>,
    grads: &mut Grads<T>,
    span: Span,
    states: Var,
    initial: Option<Var>,
    dpre: Var,
    direction: Direction,
) {
    let Shape { time, batch, .. } = tape.shape(states);
    let rows = (time - 1) * batch;
    let (skip_states, skip_dpre, start) = match direction {
        Direction::Forward => (0, batch, 0),
        Direction::Backward => (batch, 0, rows),
    };
    grads.product(
        tape,
        span,
        Rows {
            var: states,
            skip: skip_states,
            rows,
        },
        Rows {
            var: dpre,
            skip: skip_dpre,
            rows,
        },
    );
    if let Some(h0) = initial {
        grads.product(
            tape,
            span,
            Rows {
                var: h0,
                skip: 0,
                rows: batch,
            },
            Rows {
                var: dpre,
                skip: start,
                rows: batch,
            },
        );
    }
}
