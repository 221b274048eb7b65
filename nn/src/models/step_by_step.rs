//! A model one step at a time: `s' = F(s, x)`, its derivatives, and the logits of a state. Kernels, which take
//! slices: `nn::stepping` gives them to others as arrays.

use super::queries::Queries;
use crate::error::Result;
use crate::numeric::Real;

/// Turns logits (items, classes) into what is multiplied with their gradient.
pub type Weigh<'d, T> = dyn FnMut(&mut [T]) -> Result<()> + 'd;

/// Steps of many items at once. States are (items, state), inputs (items, input). Results lie in memory that the next
/// call uses again: a step of a small network takes less time than the allocations would.
pub trait StepByStep<T: Real>: Send {
    /// Numbers in a state.
    fn state_len(&self) -> usize;

    /// Numbers in an input.
    fn input_len(&self) -> usize;

    /// The state before the first step.
    fn start(&self) -> Vec<T>;

    /// Steps and their derivatives made so far, one for each item.
    fn queries(&self) -> Queries;

    /// The states after a step.
    fn step(&mut self, states: &[T], inputs: &[T]) -> Result<&[T]>;

    /// `Fx^T v`, and `Fs^T v` if it is wanted, for `copies` inputs of each state: `inputs` and the result are
    /// (copies, items, input). What depends on the states alone is computed once.
    fn vjp(
        &mut self,
        states: &[T],
        inputs: &[T],
        v: &[T],
        copies: usize,
        state: bool,
    ) -> Result<(&[T], &[T])>;

    /// `Fx dx + Fs ds` of one item, forward through the step: no Jacobian is made.
    fn jvp(&mut self, state: &[T], input: &[T], ds: &[T], dx: &[T]) -> Result<Vec<T>>;

    /// The logits of every item's state (items, classes).
    fn logits(&mut self, states: &[T]) -> Result<&[T]>;

    /// The gradient of `d . logits` with respect to every item's state, where `d` is a function of the logits.
    fn logits_vjp(&mut self, states: &[T], d: &mut Weigh<'_, T>) -> Result<&[T]>;
}
