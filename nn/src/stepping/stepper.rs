//! A recurrent classifier one step at a time, for attacks that run while the sequence arrives.
//!
//! `s' = F(s, x)`; with `v` of the size of a state, [`Stepper::vjp`] gives `Fx^T v` and `Fs^T v`,
//! [`Stepper::jacobian`] gives `Fx` (state, input) and `Fs` (state, state), [`Stepper::jvp`] gives `Fx dx + Fs ds`.

use crate::autodiff::Params;
use crate::error::{Result, same};
use crate::models::{Model, Queries, StepByStep};
use crate::numeric::{Real, flat, flat_rows, into_rows, softmax};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use std::borrow::Cow;

/// Steps through a forward-reading recurrent classifier without attention.
pub struct Stepper<'m, T: Real> {
    pub(super) inner: Box<dyn StepByStep<T> + 'm>,
    pub(super) room: Room<T>,
}

/// Memory for what lasts one call: directions, inputs between two others, and a sum.
#[derive(Default)]
pub(super) struct Room<T> {
    pub directions: Vec<T>,
    pub between: Vec<T>,
    pub sum: Vec<T>,
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
        let room = Room::default();
        Ok(Stepper { inner, room })
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
    pub fn start(&self) -> Array1<T> {
        self.inner.start().into()
    }

    /// Steps and their derivatives made so far, one for each item.
    pub fn queries(&self) -> Queries {
        self.inner.queries()
    }

    /// One step of every item: states (items, state) and inputs (items, input) to states.
    pub fn step(
        &mut self,
        states: ArrayView2<'_, T>,
        inputs: ArrayView2<'_, T>,
    ) -> Result<Array2<T>> {
        let items = states.nrows();
        let (states, inputs) = (self.states(states)?, self.inputs(inputs)?);
        let after = self.inner.step(&states, &inputs)?;
        Ok(into_rows(items, after.to_vec()))
    }

    /// `(Fx^T v, Fs^T v)` of every item, (items, input) and (items, state).
    pub fn vjp(
        &mut self,
        states: ArrayView2<'_, T>,
        inputs: ArrayView2<'_, T>,
        v: ArrayView2<'_, T>,
    ) -> Result<(Array2<T>, Array2<T>)> {
        let items = states.nrows();
        let (states, inputs) = (self.states(states)?, self.inputs(inputs)?);
        let v = flat_rows("v", self.state_len(), v)?;
        let (dx, ds) = self.inner.vjp(&states, &inputs, &v, 1, true)?;
        Ok((into_rows(items, dx.to_vec()), into_rows(items, ds.to_vec())))
    }

    /// All derivatives of one step of one item; counted as a step and its gradient for each row.
    pub fn jacobian(
        &mut self,
        state: ArrayView1<'_, T>,
        input: ArrayView1<'_, T>,
    ) -> Result<Jacobian<T>> {
        self.jacobian_of(&flat(state), &flat(input))
    }

    pub(super) fn jacobian_of(&mut self, state: &[T], input: &[T]) -> Result<Jacobian<T>> {
        let n = self.state_len();
        same("state", n, state.len())?;
        // One copy of the item for each row of the Jacobian.
        let (states, inputs) = (state.repeat(n), input.repeat(n));
        let unit: Vec<T> = (0..n * n)
            .map(|i| if i / n == i % n { T::ONE } else { T::ZERO })
            .collect();
        let (fx, fs) = self.inner.vjp(&states, &inputs, &unit, 1, true)?;
        Ok(Jacobian {
            input: into_rows(n, fx.to_vec()),
            state: into_rows(n, fs.to_vec()),
        })
    }

    /// `Fx dx + Fs ds` of one item, forward through the step: no Jacobian is made.
    pub fn jvp(
        &mut self,
        state: ArrayView1<'_, T>,
        input: ArrayView1<'_, T>,
        ds: ArrayView1<'_, T>,
        dx: ArrayView1<'_, T>,
    ) -> Result<Array1<T>> {
        let moved = self
            .inner
            .jvp(&flat(state), &flat(input), &flat(ds), &flat(dx))?;
        Ok(moved.into())
    }

    /// The logits of every item's state (items, classes).
    pub fn logits(&mut self, states: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let items = states.nrows();
        let states = self.states(states)?;
        Ok(into_rows(items, self.inner.logits(&states)?.to_vec()))
    }

    /// The class probabilities of every item's state (items, classes).
    pub fn probabilities(&mut self, states: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let mut logits = self.logits(states)?;
        for mut row in logits.outer_iter_mut() {
            softmax(row.as_slice_mut().expect("the standard layout"));
        }
        Ok(logits)
    }

    /// The gradient of `d . logits` with respect to every item's state, `d` (items, classes).
    pub fn logits_vjp(
        &mut self,
        states: ArrayView2<'_, T>,
        d: ArrayView2<'_, T>,
    ) -> Result<Array2<T>> {
        let items = states.nrows();
        let (states, d) = (self.states(states)?, flat(d));
        let ds = self.inner.logits_vjp(&states, &mut |logits| {
            same("d", logits.len(), d.len())?;
            logits.copy_from_slice(&d);
            Ok(())
        })?;
        Ok(into_rows(items, ds.to_vec()))
    }

    fn states<'a>(&self, states: ArrayView2<'a, T>) -> Result<Cow<'a, [T]>> {
        flat_rows("states", self.state_len(), states)
    }

    fn inputs<'a>(&self, inputs: ArrayView2<'a, T>) -> Result<Cow<'a, [T]>> {
        flat_rows("inputs", self.input_len(), inputs)
    }
}
