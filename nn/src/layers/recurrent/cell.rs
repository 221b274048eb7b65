//! A kind of recurrent layer: what models and steppers need of an RNN, a GRU or an LSTM, whichever it is.

use super::narrow::NarrowEquations;
use super::row_step::StepEquations;
use super::states::{Direction, States};
use super::unrolled::{Reading, Unrolled};
use super::weights::GateWeights;
use crate::autodiff::{Init, Layout, Params, Tape, Var};
use crate::batch::Lens;
use crate::layers::steps::Steps;
use crate::numeric::Real;
use std::fmt::Debug;

/// From the input of a layer to its hidden states alone.
pub type HiddenStates<T> =
    fn(&GateWeights, &mut Tape<T>, &Params<T>, &Steps<T>, Reading<'_>) -> Steps<T>;

/// A recurrent layer of one kind.
pub trait RecurrentCell: Copy + Debug + Send + Sync + 'static {
    /// Whether there is a cell state beside the hidden state.
    const CELL_STATE: bool;

    /// One step of the layer.
    type Equations<T: Real>: StepEquations<T>;

    /// One step of a narrow layer.
    type Narrow<T: Real>: NarrowEquations<T>;

    /// Weights start as `init`, biases at zero.
    fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self;

    /// The weights from input and state to the gates.
    fn gates(&self) -> &GateWeights;

    /// The layer one step at a time, with these weights.
    fn equations<T: Real>(&self, params: &Params<T>) -> Self::Equations<T>;

    /// The same where it is narrow.
    fn narrow<T: Real>(&self, params: &Params<T>) -> Self::Narrow<T>;

    /// Runs over all steps.
    fn unroll<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, over: Unrolled) -> States;

    /// The way to the hidden states alone, with the bits of [`RecurrentCell::unroll`], if there is a shorter one where
    /// no gradient is wanted.
    #[allow(
        private_interfaces,
        reason = "rows that a pass without gradients keeps"
    )]
    fn hidden_states<T: Real>() -> Option<HiddenStates<T>> {
        None
    }

    /// Sets the bias of the forget gate in fresh weights, if there is one.
    fn set_forget_bias<T: Real>(&self, params: &mut Params<T>, value: f64) {
        let _ = (params, value);
    }

    /// Hidden units.
    fn units(&self) -> usize {
        self.gates().units()
    }

    /// Numbers in an input row.
    fn inputs(&self) -> usize {
        self.gates().input.weight.rows
    }

    /// Runs over all steps from `initial` (hidden, and cell state if there is one), or from zero.
    fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<(Var, Option<Var>)>,
        direction: Direction,
    ) -> States {
        let initial = initial.filter(|(_, c)| c.is_some() || !Self::CELL_STATE);
        let over = Unrolled {
            x,
            lens: lens.clone(),
            h0: initial.map(|(h, _)| h),
            c0: initial.and_then(|(_, c)| c.filter(|_| Self::CELL_STATE)),
            direction,
        };
        self.unroll(tape, params, over)
    }
}
