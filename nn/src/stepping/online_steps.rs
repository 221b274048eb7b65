//! What attacks that run while the sequence arrives ask of a model.
//!
//! Behind a pointer: [`Stepper`] is generic, so every crate that uses it would compile it again, with its own settings; what
//! [`stepper`] gives was compiled with this crate, and is fast also in programs that are built for debugging.

use super::goal::Goal;
use super::quadrature::Quadrature;
use super::stepper::{Jacobian, Room, Stepper};
use crate::autodiff::Params;
use crate::error::Result;
use crate::models::Model;
use crate::numeric::{PerPrecision, Real, softmax};
use std::marker::PhantomData;

/// Rows of a product that make the most of it.
const ROWS: usize = 32;

/// What attacks that run while the sequence arrives ask of a model, of many items at once. Slices that are returned lie
/// in memory that the next call uses again.
pub trait Stepping<T: Real>: Send {
    /// Numbers in a state.
    fn state_len(&self) -> usize;

    /// Numbers in an input.
    fn input_len(&self) -> usize;

    /// The state before the first step.
    fn start(&self) -> Vec<T>;

    /// States (items, state) and inputs (items, input) to states.
    fn step(&mut self, states: &[T], inputs: &[T]) -> Result<&[T]>;

    /// All derivatives of one step of one item.
    fn jacobian(&mut self, state: &[T], input: &[T]) -> Result<Jacobian<T>>;

    /// The class probabilities of every state (items, classes).
    fn probabilities(&mut self, states: &[T]) -> Result<Vec<T>>;

    /// The direction, of length 1, in which the goal of each item grows fastest with its state (items, state);
    /// zeros where nothing changes it.
    fn ascent(&mut self, states: &[T], goals: &[Goal]) -> Result<&[T]>;

    /// `Fx(state, input)^T v` of every item (items, input), with `v` that direction.
    fn climb(&mut self, states: &[T], inputs: &[T], goals: &[Goal]) -> Result<&[T]>;

    /// The logarithm of the odds that each item's goal has at its state.
    fn odds(&mut self, states: &[T], goals: &[Goal]) -> Result<Vec<f64>>;

    /// `B^T v` of every item (items, input), with `B` the mean of `Fx(state, input + l d)` over `l` from 0 to 1.
    fn mean_pull(
        &mut self,
        states: &[T],
        inputs: &[T],
        d: &[T],
        v: &[T],
        quadrature: &Quadrature,
    ) -> Result<&[T]>;
}

/// The function that makes a stepper in one precision.
struct MakerOf<'m>(PhantomData<&'m ()>);

impl<'m> PerPrecision for MakerOf<'m> {
    type Of<T: Real> = fn(&'m Model, &'m Params<T>) -> Result<Box<dyn Stepping<T> + 'm>>;
}

/// The model step by step.
pub fn stepper<'m, T: Real>(
    model: &'m Model,
    params: &'m Params<T>,
) -> Result<Box<dyn Stepping<T> + 'm>> {
    T::choose::<MakerOf<'m>>(single, double)(model, params)
}

fn single<'m>(model: &'m Model, params: &'m Params<f32>) -> Result<Box<dyn Stepping<f32> + 'm>> {
    Ok(Box::new(Stepper::new(model, params)?))
}

fn double<'m>(model: &'m Model, params: &'m Params<f64>) -> Result<Box<dyn Stepping<f64> + 'm>> {
    Ok(Box::new(Stepper::new(model, params)?))
}

impl<T: Real> Stepping<T> for Stepper<'_, T> {
    fn state_len(&self) -> usize {
        Stepper::state_len(self)
    }

    fn input_len(&self) -> usize {
        Stepper::input_len(self)
    }

    fn start(&self) -> Vec<T> {
        self.inner.start()
    }

    fn step(&mut self, states: &[T], inputs: &[T]) -> Result<&[T]> {
        self.inner.step(states, inputs)
    }

    fn jacobian(&mut self, state: &[T], input: &[T]) -> Result<Jacobian<T>> {
        self.jacobian_of(state, input)
    }

    fn probabilities(&mut self, states: &[T]) -> Result<Vec<T>> {
        let mut logits = self.inner.logits(states)?.to_vec();
        let items = states.len() / Stepper::state_len(self);
        let classes = logits.len() / items;
        for z in logits.chunks_exact_mut(classes) {
            softmax(z);
        }
        Ok(logits)
    }

    fn ascent(&mut self, states: &[T], goals: &[Goal]) -> Result<&[T]> {
        let mut direction = |logits: &mut [T]| {
            let classes = logits.len() / goals.len();
            for (z, goal) in logits.chunks_exact_mut(classes).zip(goals) {
                goal.direct(z);
            }
            Ok(())
        };
        let state_len = Stepper::state_len(self);
        let v = &mut self.room.directions;
        v.clear();
        v.extend_from_slice(self.inner.logits_vjp(states, &mut direction)?);
        v.chunks_exact_mut(state_len).for_each(unit);
        Ok(v)
    }

    fn climb(&mut self, states: &[T], inputs: &[T], goals: &[Goal]) -> Result<&[T]> {
        Stepping::ascent(self, states, goals)?;
        let v = &self.room.directions;
        Ok(self.inner.vjp(states, inputs, v, 1, false)?.0)
    }

    fn odds(&mut self, states: &[T], goals: &[Goal]) -> Result<Vec<f64>> {
        let logits = self.inner.logits(states)?;
        let classes = logits.len() / goals.len();
        let pairs = logits.chunks_exact(classes).zip(goals);
        Ok(pairs.map(|(z, goal)| goal.odds(z)).collect())
    }

    fn mean_pull(
        &mut self,
        states: &[T],
        inputs: &[T],
        d: &[T],
        v: &[T],
        quadrature: &Quadrature,
    ) -> Result<&[T]> {
        let points = quadrature.points();
        let items = states.len() / Stepper::state_len(self).max(1);
        let Room { between, sum, .. } = &mut self.room;
        sum.clear();
        sum.resize(inputs.len(), T::ZERO);
        // A few points are one batch where that makes products worth their while; more would not stay in the cache.
        for points in points.chunks((ROWS / items.max(1)).max(1)) {
            between.clear();
            for (place, _) in points {
                let place = T::of(*place);
                let pairs = inputs.iter().zip(d);
                between.extend(pairs.map(|(x, d)| *x + place * *d));
            }
            let (pulled, _) = self.inner.vjp(states, between, v, points.len(), false)?;
            for ((_, weight), rows) in points.iter().zip(pulled.chunks_exact(inputs.len())) {
                let weight = T::of(*weight);
                let pairs = sum.iter_mut().zip(rows);
                pairs.for_each(|(s, r)| *s += weight * *r);
            }
        }
        Ok(sum)
    }
}

/// Makes the length 1, whatever it was but 0.
fn unit<T: Real>(v: &mut [T]) {
    // By the largest first: squares of small numbers are 0.
    let most = |most: T, x: &T| if x.abs() > most { x.abs() } else { most };
    // Eight at a time, which do not wait for each other.
    let (eights, rest) = v.as_chunks::<8>();
    let mut largest = T::ZERO;
    if !eights.is_empty() {
        let mut tops = [T::ZERO; 8];
        for eight in eights {
            for (top, x) in tops.iter_mut().zip(eight) {
                *top = most(*top, x);
            }
        }
        largest = tops.iter().fold(largest, most);
    }
    largest = rest.iter().fold(largest, most);
    if largest == T::ZERO {
        return;
    }
    let scale = 1.0 / largest.to_f64();
    // Four sums, which do not wait for each other.
    let mut sums = [0.0; 4];
    let (fours, rest) = v.as_chunks::<4>();
    let square = |sums: &mut [f64; 4], part: &[T]| {
        for (sum, x) in sums.iter_mut().zip(part) {
            let x = x.to_f64() * scale;
            *sum += x * x;
        }
    };
    fours.iter().for_each(|part| square(&mut sums, part));
    square(&mut sums, rest);
    let length = ((sums[0] + sums[2]) + (sums[1] + sums[3])).sqrt();
    let scale = scale / length;
    v.iter_mut().for_each(|x| *x = T::of(x.to_f64() * scale));
}
