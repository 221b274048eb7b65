//! A recurrent classifier one step at a time, for attacks that run while the sequence arrives.
//!
//! `s' = F(s, x)`; with `v` of the size of a state, [`Stepper::vjp`] gives `Fx^T v` and `Fs^T v`,
//! [`Stepper::jacobian`] gives `Fx` (state, input) and `Fs` (state, state), [`Stepper::jvp`] gives `Fx dx + Fs ds`.

use crate::autodiff::Params;
use crate::error::{Result, same};
use crate::models::{Model, Queries, StepByStep};
use crate::numeric::Real;
use ndarray::Array2;

/// Steps through a forward-reading recurrent classifier without attention.
pub struct Stepper<'m, T: Real> {
    pub(super) inner: Box<dyn StepByStep<T> + 'm>,
}

/// Derivatives of one step of one item, rows of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Jacobian<T> {
    /// (state, input)
    pub input: Array2<T>,
    /// (state, state)
    pub state: Array2<T>,
}

impl<'m, T: Real> Stepper<'m, T> {
    /// An error for models that need the whole sequence at once.
    pub fn new(model: &'m Model, params: &'m Params<T>) -> Result<Self> {
        let inner = model.step_by_step(params)?;
        Ok(Stepper { inner })
    }

    /// Numbers in a state.
    pub fn state_len(&self) -> usize {
        self.inner.state_len()
    }

    /// Numbers in an input.
    pub fn input_len(&self) -> usize {
        self.inner.input_len()
    }

    /// The state before the first step.
    pub fn start(&self) -> Vec<T> {
        self.inner.start()
    }

    /// Steps and their derivatives made so far, one for each item.
    pub fn queries(&self) -> Queries {
        self.inner.queries()
    }

    /// One step of `items` items: states (items, state) and inputs (items, input) to states.
    pub fn step(&mut self, states: &[T], inputs: &[T]) -> Result<Vec<T>> {
        self.inner.step(states, inputs)
    }

    /// `(Fx^T v, Fs^T v)` of every item.
    pub fn vjp(&mut self, states: &[T], inputs: &[T], v: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        self.inner.vjp(states, inputs, v, 1, true)
    }

    /// `Fx^T v` of every item, without the part of the state, for `copies` inputs of each state: `inputs` and the
    /// result are (copies, items, input). What depends on the states alone is computed once.
    pub fn input_vjps(
        &mut self,
        states: &[T],
        inputs: &[T],
        v: &[T],
        copies: usize,
    ) -> Result<Vec<T>> {
        Ok(self.inner.vjp(states, inputs, v, copies, false)?.0)
    }

    /// All derivatives of one step of one item; counted as a step and its gradient for each row.
    pub fn jacobian(&mut self, state: &[T], input: &[T]) -> Result<Jacobian<T>> {
        let n = self.state_len();
        same("state", n, state.len())?;
        // One copy of the item for each row of the Jacobian.
        let (states, inputs) = (state.repeat(n), input.repeat(n));
        let unit: Vec<T> = (0..n * n)
            .map(|i| if i / n == i % n { T::ONE } else { T::ZERO })
            .collect();
        let (fx, fs) = self.vjp(&states, &inputs, &unit)?;
        let matrix = |columns: usize, data: Vec<T>| {
            Array2::from_shape_vec((n, columns), data).expect("a row per number of the state")
        };
        Ok(Jacobian {
            input: matrix(input.len(), fx),
            state: matrix(n, fs),
        })
    }

    /// `Fx dx + Fs ds` of one item, forward through the step: no Jacobian is made.
    pub fn jvp(&mut self, state: &[T], input: &[T], ds: &[T], dx: &[T]) -> Result<Vec<T>> {
        self.inner.jvp(state, input, ds, dx)
    }

    /// The logits of every item's state.
    pub fn logits(&mut self, states: &[T]) -> Result<Vec<T>> {
        self.inner.logits(states)
    }

    /// The gradient of `d . logits` with respect to every item's state.
    pub fn logits_vjp(&mut self, states: &[T], d: &[T]) -> Result<Vec<T>> {
        self.inner.logits_vjp(states, &mut |_| d.to_vec())
    }
}
