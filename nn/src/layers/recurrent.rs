//! What recurrent layers share: direction, masks, initial states, and the last state.
//!
//! Beyond an item's length its state is carried unchanged, in either direction, so that the
//! state at the end of the batch is the state at the end of the item.

use super::{Gru, Lens, Lstm, Rnn};
use crate::Real;
use crate::batch::Side;
use crate::gemm::{Into, Mat, Packed, gemm, gemm_packed};
use crate::grads::{Grads, Rows};
use crate::params::{Params, Span};
use crate::tape::{Op, Shape, Tape, Var};

/// The order in which steps are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// First to last.
    Forward,
    /// Last to first.
    Backward,
}

impl Direction {
    /// Steps in order of reading.
    pub(crate) fn steps(self, time: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..time).map(move |k| {
            if self == Direction::Forward {
                k
            } else {
                time - 1 - k
            }
        })
    }

    /// The step read before `t`.
    pub(crate) fn before(self, t: usize, time: usize) -> Option<usize> {
        match self {
            Direction::Forward => t.checked_sub(1),
            Direction::Backward => (t + 1 < time).then_some(t + 1),
        }
    }
}

/// One gate's activations: columns `from..from + units` of `var`.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// `i`, `f`, `g`, `o` of an LSTM; `z`, `r`, `n` of a GRU.
    pub name: char,
    /// (time, batch, gates * units)
    pub var: Var,
    /// Its first column.
    pub from: usize,
}

/// Everything a recurrent layer went through; objectives may put gradients on any of it.
#[derive(Clone, Debug)]
pub struct States {
    /// Hidden states, (time, batch, units).
    pub h: Var,
    /// Cell states of an LSTM.
    pub c: Option<Var>,
    /// Gate activations.
    pub gates: Vec<Gate>,
    /// The order in which steps were read.
    pub direction: Direction,
    /// Whose steps they are.
    pub side: Side,
}

/// A recurrent layer of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    /// Vanilla.
    Rnn(Rnn),
    /// Gated recurrent unit.
    Gru(Gru),
    /// Long short-term memory.
    Lstm(Lstm),
}

impl Cell {
    /// Runs over all steps from `initial` (hidden, and cell for an LSTM), or from zero.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<(Var, Option<Var>)>,
        direction: Direction,
    ) -> States {
        match self {
            Cell::Rnn(layer) => {
                layer.forward(tape, params, x, lens, initial.map(|s| s.0), direction)
            }
            Cell::Gru(layer) => {
                layer.forward(tape, params, x, lens, initial.map(|s| s.0), direction)
            }
            Cell::Lstm(layer) => {
                let initial = initial.and_then(|(h, c)| Some((h, c?)));
                layer.forward(tape, params, x, lens, initial, direction)
            }
        }
    }

    /// Hidden units.
    pub fn units(&self) -> usize {
        match self {
            Cell::Rnn(layer) => layer.units,
            Cell::Gru(layer) => layer.units,
            Cell::Lstm(layer) => layer.units,
        }
    }

    /// Numbers in an input row.
    pub fn inputs(&self) -> usize {
        match self {
            Cell::Rnn(layer) => layer.input.rows,
            Cell::Gru(layer) => layer.input.rows,
            Cell::Lstm(layer) => layer.input.rows,
        }
    }

    /// Whether there is a cell state beside the hidden state.
    pub fn has_cell(&self) -> bool {
        matches!(self, Cell::Lstm(_))
    }
}

/// The state after the last step read, (1, batch, units).
pub fn last<T: Real>(tape: &mut Tape<T>, h: Var, direction: Direction) -> Var {
    let shape = tape.shape(h);
    let at = if direction == Direction::Forward {
        shape.time - 1
    } else {
        0
    };
    let y = tape.output(Shape { time: 1, ..shape }, &[h], false);
    let mut out = tape.take(y);
    let rows = at * shape.batch * shape.dim..(at + 1) * shape.batch * shape.dim;
    out.copy_from_slice(&tape.get(h)[rows.clone()]);
    tape.put(y, out);
    tape.record(y, Last { h, y, rows });
    y
}

struct Last {
    h: Var,
    y: Var,
    rows: std::ops::Range<usize>,
}

impl<T: Real> Op<T> for Last {
    fn backward(&self, tape: &mut Tape<T>, _: &Params<T>, _: &mut Grads<T>) {
        let Some(dy) = tape.take_grad(self.y) else {
            return;
        };
        if let Some(mut dh) = tape.grad_to_add(self.h) {
            for (h, y) in dh[self.rows.clone()].iter_mut().zip(&dy) {
                *h += *y;
            }
            tape.put_grad(self.h, dh);
        }
        tape.recycle(dy);
    }
}

/// Recurrent weights, packed when the sequence is long enough to pay for it.
pub(crate) enum Recurrent<'a, T> {
    Packed(Packed<T>),
    Plain(Mat<'a, T>),
}

impl<'a, T: Real> Recurrent<'a, T> {
    pub(crate) fn new(weights: Mat<'a, T>, time: usize) -> Self {
        if time < 4 {
            return Recurrent::Plain(weights);
        }
        let mut packed = Packed::default();
        packed.pack(weights);
        Recurrent::Packed(packed)
    }

    /// `c += a w`
    pub(crate) fn add(&self, c: &mut [T], a: Mat<T>) {
        match self {
            Recurrent::Packed(w) => gemm_packed(Into::Add, c, a, w),
            Recurrent::Plain(w) => gemm(Into::Add, c, a, *w),
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
