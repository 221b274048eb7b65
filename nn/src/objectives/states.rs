//! A weighted sum of chosen hidden states, cell states or gates.

use super::range::below;
use crate::autodiff::Tape;
use crate::error::{Error, Result};
use crate::layers::States;
use crate::numeric::Real;

/// Which numbers of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Hidden state.
    Hidden,
    /// Cell state.
    Cell,
    /// A gate by its letter.
    Gate(char),
}

/// `weight * state[layer, step, unit]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateTerm {
    /// Index among the model's recurrent layers.
    pub layer: usize,
    /// Hidden, cell or gate.
    pub kind: StateKind,
    /// The step.
    pub step: usize,
    /// The unit, or all of them.
    pub unit: Option<usize>,
    /// The factor.
    pub weight: f64,
}

impl StateTerm {
    /// Adds the term of item `b` to `value`, and `scale` times its gradient to the tape.
    pub(super) fn apply<T: Real>(
        &self,
        tape: &mut Tape<T>,
        layers: &[States],
        b: usize,
        scale: f64,
        value: &mut f64,
    ) -> Result<()> {
        let states = &layers[below("layer", self.layer, layers.len())?];
        let units = tape.shape(states.h).dim;
        let (var, from) = match self.kind {
            StateKind::Hidden => (states.h, 0),
            StateKind::Cell => (states.c.ok_or(Error::Missing { what: "cell state" })?, 0),
            StateKind::Gate(name) => {
                let gate = states.gates.iter().find(|g| g.name == name);
                let gate = gate.ok_or(Error::Missing {
                    what: "gate of that name",
                })?;
                (gate.var, gate.from)
            }
        };
        let shape = tape.shape(var);
        below("step", self.step, shape.time)?;
        let chosen = match self.unit {
            None => 0..units,
            Some(u) => below("unit", u, units)?..u + 1,
        };
        let row = (self.step * shape.batch + b) * shape.dim + from;
        for unit in chosen {
            *value += self.weight * tape.get(var)[row + unit].to_f64();
            tape.seed(var)[row + unit] += T::of(self.weight * scale);
        }
        Ok(())
    }
}
