//! What a rule knows when a sample arrives, and what it can compute from the model.

use super::goal::Goal;
use super::online_steps::Stepping;
use super::quadrature::Quadrature;
use crate::error::Result;
use crate::models::Queries;
use crate::numeric::{Real, flat, into_rows, view_rows};
use ndarray::{Array1, Array2, ArrayView2};

/// One sample of every item, and all that came before, as far as states remember it.
pub struct OnlineContext<'a, 'm, T: Real> {
    pub(super) stepper: &'a mut (dyn Stepping<T> + 'm),
    pub(super) bill: &'a mut [Queries],
    pub(super) goals: &'a [Goal],
    pub(super) sample: u64,
    pub(super) inputs: &'a [T],
    pub(super) states: &'a [T],
    pub(super) nominal: &'a [T],
}

impl<T: Real> OnlineContext<'_, '_, T> {
    /// Which sample this is, from 0.
    pub fn sample(&self) -> u64 {
        self.sample
    }

    /// How many items there are.
    pub fn items(&self) -> usize {
        self.goals.len()
    }

    /// Numbers in a sample.
    pub fn width(&self) -> usize {
        self.stepper.input_len()
    }

    /// The samples (items, input) as they came.
    pub fn inputs(&self) -> ArrayView2<'_, T> {
        view_rows(self.width(), self.inputs)
    }

    /// The direction, of length 1, in which the goal of each item grows fastest with its state (items, state);
    /// zeros where nothing changes it.
    pub fn ascent(&mut self) -> Result<Array2<T>> {
        for q in &mut self.bill[..self.goals.len()] {
            q.forwards += 1;
            q.backwards += 1;
        }
        let directions = self.stepper.ascent(self.states, self.goals)?;
        Ok(into_rows(self.goals.len(), directions.to_vec()))
    }

    /// `Fx(h2, x)^T v` of all items (items, input), with `v` the direction of [`OnlineContext::ascent`]: where each
    /// sample must go for the goal to grow fastest.
    pub fn climb(&mut self) -> Result<Array2<T>> {
        for q in &mut self.bill[..self.goals.len()] {
            q.forwards += 2;
            q.backwards += 2;
        }
        let pulled = self.stepper.climb(self.states, self.inputs, self.goals)?;
        Ok(into_rows(self.goals.len(), pulled.to_vec()))
    }

    /// `e = h2 - h1` (items, state): how far the runs are apart.
    pub fn error(&self) -> Array2<T> {
        let pairs = self.states.iter().zip(self.nominal);
        let apart = pairs.map(|(attacked, nominal)| *attacked - *nominal);
        into_rows(self.goals.len(), apart.collect())
    }

    /// [`OnlineContext::pull`] of all items.
    pub fn pull_all(
        &mut self,
        v: ArrayView2<'_, T>,
        d: ArrayView2<'_, T>,
        quadrature: &Quadrature,
    ) -> Result<Array2<T>> {
        let (items, points) = (self.items(), quadrature.points().len() as u64);
        for q in &mut self.bill[..items] {
            q.forwards += points;
            q.backwards += points;
        }
        let (states, inputs) = (self.states, self.inputs);
        let pulled = self
            .stepper
            .mean_pull(states, inputs, &flat(d), &flat(v), quadrature)?;
        Ok(into_rows(items, pulled.to_vec()))
    }

    /// `B(h2, x, d)^T v` of some items, with `B` the mean of `Fx(h2, x + l d)` over `l` from 0 to 1.
    /// `d` (items, input) and `v` (items, state) are of all items; the answer has a row for each of `which`.
    pub fn pull(
        &mut self,
        which: &[usize],
        v: ArrayView2<'_, T>,
        d: ArrayView2<'_, T>,
        quadrature: &Quadrature,
    ) -> Result<Array2<T>> {
        if which.len() == self.items() {
            return self.pull_all(v, d, quadrature);
        }
        let (n, m) = (self.stepper.state_len(), self.width());
        let points = quadrature.points().len() as u64;
        for &item in which {
            self.bill[item].forwards += points;
            self.bill[item].backwards += points;
        }
        let some = |rows: &[T], width: usize| -> Vec<T> {
            let rows = which.iter().map(|i| &rows[i * width..(i + 1) * width]);
            rows.flatten().copied().collect()
        };
        let pulled = self.stepper.mean_pull(
            &some(self.states, n),
            &some(self.inputs, m),
            &some(&flat(d), m),
            &some(&flat(v), n),
            quadrature,
        )?;
        Ok(into_rows(which.len(), pulled.to_vec()))
    }

    /// The logarithm of the odds that the goal of each of `which` would have after reading an input in place of its
    /// sample: `inputs` has a row for each, and an item may be there several times. Each costs a step and a pass through the head.
    pub fn odds(&mut self, which: &[usize], inputs: ArrayView2<'_, T>) -> Result<Array1<f64>> {
        if which.is_empty() {
            return Ok(Array1::default(0));
        }
        let n = self.stepper.state_len();
        for &item in which {
            self.bill[item].forwards += 2;
        }
        let states = which.iter().map(|i| &self.states[i * n..(i + 1) * n]);
        let states: Vec<T> = states.flatten().copied().collect();
        let goals: Vec<Goal> = which.iter().map(|i| self.goals[*i]).collect();
        let read = self.stepper.step(&states, &flat(inputs))?.to_vec();
        Ok(self.stepper.odds(&read, &goals)?.into())
    }
}
