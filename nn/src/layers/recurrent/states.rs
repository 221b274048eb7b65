//! What a recurrent layer leaves on the tape: states and gates of every step, and the last state.
//!
//! Beyond an item's length its state is carried unchanged, in either direction, so that the
//! state at the end of the batch is the state at the end of the item.

use crate::autodiff::{Shape, Tape, Var};
use crate::batch::Side;
use crate::layers::slices::add;
use crate::numeric::Real;

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

impl States {
    /// States of the sequence that was read.
    pub(in crate::layers) fn new(
        h: Var,
        c: Option<Var>,
        gates: Vec<Gate>,
        direction: Direction,
    ) -> Self {
        States {
            h,
            c,
            gates,
            direction,
            side: Side::Source,
        }
    }
}

impl Gate {
    /// Gates that share a value, by name in the order of their columns.
    pub(in crate::layers) fn list(names: &str, var: Var, units: usize) -> Vec<Gate> {
        let gate = |(k, name)| Gate {
            name,
            var,
            from: k * units,
        };
        names.chars().enumerate().map(gate).collect()
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
    tape.record_output(y, move |tape, _, _, dy| {
        tape.add_grad_with(h, |_, dh| add(&mut dh[rows.clone()], dy));
    });
    y
}
