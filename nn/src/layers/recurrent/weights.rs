//! Products with recurrent weights, and their gradient.

use super::states::Direction;
use crate::autodiff::{Grads, Rows, Shape, Span, Tape, Var};
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, Packed, gemm, gemm_packed};

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
