//! Perturbing sequences while they arrive: sample `k` is changed before sample `k + 1` is known.
//!
//! `h2(k+1) = F(h2(k), x(k) + d(k))` is the run under attack, `h1(k+1) = F(h1(k), x(k))` the run without,
//! and a [`Rule`] computes `d(k)` from what is known at `k`: states, sample and goal, all in an [`OnlineContext`].
//! [`Online`] takes one sample of every item at a time, in constant time and memory, for ever.
//!
//! Items advance together and share nothing but matrix products, whose rows do not depend on each other:
//! an item alone gets the same bits as in any batch.

use super::goal::Goal;
use super::limits::Limits;
use super::online_context::OnlineContext;
use super::online_steps::{Stepping, stepper};
use crate::autodiff::Params;
use crate::error::{Error, Result, same};
use crate::models::{Model, Queries};
use crate::numeric::{Real, finite, flat, flat_rows, into_rows, view_rows};
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;

/// What is added to a sample: one paper's formula each.
pub trait Rule<T: Real> {
    /// The perturbations (items, input) of the samples that have just come.
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> Result<Array2<T>>;

    /// Whether it looks at the run without perturbations, which costs one more step per sample.
    fn follows_nominal(&self) -> bool {
        false
    }

    /// Forgets all items but the first `items`: the others have ended.
    fn keep(&mut self, items: usize) {
        let _ = items;
    }
}

impl<T: Real, R: Rule<T> + ?Sized> Rule<T> for Box<R> {
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> Result<Array2<T>> {
        (**self).perturb(now)
    }

    fn follows_nominal(&self) -> bool {
        (**self).follows_nominal()
    }

    fn keep(&mut self, items: usize) {
        (**self).keep(items);
    }
}

/// From perturbed samples (items, input) to what is read in their place.
pub type Choose<'c, T> =
    dyn FnMut(&mut OnlineContext<'_, '_, T>, ArrayView2<'_, T>) -> Result<Array2<T>> + 'c;

/// Sequences under attack, as far as they have come.
pub struct Online<'m, T: Real, R> {
    stepper: Box<dyn Stepping<T> + 'm>,
    rule: R,
    goals: Vec<Goal>,
    limits: Limits,
    samples: u64,
    states: Vec<T>,
    nominal: Vec<T>,
    bill: Vec<Queries>,
}

impl<'m, T: Real, R: Rule<T>> Online<'m, T, R> {
    /// One item for each goal, all before their first sample.
    pub fn new(
        model: &'m Model,
        params: &'m Params<T>,
        rule: R,
        goals: Vec<Goal>,
        limits: Limits,
    ) -> Result<Self> {
        if goals.is_empty() {
            return Err(Error::Empty {
                what: "list of goals",
            });
        }
        for (item, goal) in goals.iter().enumerate() {
            goal.check(item, model.outputs())?;
        }
        limits.check()?;
        let stepper = stepper(model, params)?;
        let states = stepper.start().repeat(goals.len());
        Ok(Online {
            stepper,
            nominal: if rule.follows_nominal() {
                states.clone()
            } else {
                Vec::new()
            },
            states,
            rule,
            limits,
            samples: 0,
            bill: vec![Queries::default(); goals.len()],
            goals,
        })
    }

    /// Takes the next sample of every item (items, input) and gives what the model is to read instead.
    pub fn push(&mut self, inputs: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let inputs = self.checked(inputs)?;
        let moved = self.advance(&inputs, None)?;
        Ok(into_rows(self.goals.len(), moved))
    }

    /// The same where the model cannot read just anything: `choose` makes of the perturbed samples (items, input)
    /// what there is to be read, such as the vectors of words, within no limits but its own.
    pub fn push_as(
        &mut self,
        inputs: ArrayView2<'_, T>,
        choose: &mut Choose<'_, T>,
    ) -> Result<Array2<T>> {
        let inputs = self.checked(inputs)?;
        let moved = self.advance(&inputs, Some(choose))?;
        Ok(into_rows(self.goals.len(), moved))
    }

    /// One sample of each item.
    fn checked<'a>(&self, inputs: ArrayView2<'a, T>) -> Result<Cow<'a, [T]>> {
        let flat = flat_rows("values in a sample", self.width(), inputs)?;
        same("inputs", self.goals.len() * self.width(), flat.len())?;
        finite("input", &flat)?;
        Ok(flat)
    }

    fn advance(&mut self, inputs: &[T], choose: Option<&mut Choose<'_, T>>) -> Result<Vec<T>> {
        let width = self.width();
        let mut now = OnlineContext {
            stepper: self.stepper.as_mut(),
            bill: &mut self.bill,
            goals: &self.goals,
            sample: self.samples,
            inputs,
            states: &self.states,
            nominal: &self.nominal,
        };
        let d = self.rule.perturb(&mut now)?;
        let d = flat(d.view());
        same("perturbation", inputs.len(), d.len())?;
        finite("perturbation", &d)?;
        let mut moved = self.limits.all(inputs, &d);
        if let Some(choose) = choose {
            let chosen = choose(&mut now, view_rows(width, &moved))?;
            same("choice", inputs.len(), chosen.len())?;
            moved = flat(chosen.view()).into_owned();
        }
        let mut steps = 1;
        if self.rule.follows_nominal() {
            let after = self.stepper.step(&self.nominal, inputs)?;
            self.nominal.copy_from_slice(after);
            steps += 1;
        }
        let after = self.stepper.step(&self.states, &moved)?;
        self.states.copy_from_slice(after);
        let going = &mut self.bill[..self.goals.len()];
        going.iter_mut().for_each(|q| q.forwards += steps);
        self.samples += 1;
        Ok(moved)
    }

    /// Goes on with the first `items` items only: the others have ended.
    pub fn keep(&mut self, items: usize) {
        let n = self.stepper.state_len();
        self.states.truncate(items * n);
        self.nominal.truncate(items * n);
        self.goals.truncate(items);
        self.rule.keep(items);
    }

    /// Numbers in a sample.
    pub fn width(&self) -> usize {
        self.stepper.input_len()
    }

    /// Samples taken so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The states (items, state) of the run under attack.
    pub fn states(&self) -> ArrayView2<'_, T> {
        view_rows(self.stepper.state_len(), &self.states)
    }

    /// The rule, with what it remembers.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// Passes through steps and heads so far, and their gradients: for every item there has been, kept or not.
    pub fn bill(&self) -> &[Queries] {
        &self.bill
    }

    /// The current class probabilities (items, classes); not counted as a query.
    pub fn probabilities(&mut self) -> Result<Array2<T>> {
        let all = self.stepper.probabilities(&self.states)?;
        Ok(into_rows(self.goals.len(), all))
    }
}
