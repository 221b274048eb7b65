//! A recurrent classifier one step at a time, for attacks that run while the sequence arrives.
//!
//! The state `s` of an item is `[h, c]` of every layer, one after the other (no `c` outside LSTMs).
//! `s' = F(s, x)`; with `v` of the size of a state, [`Stepper::vjp`] gives `Fx^T v` and `Fs^T v`,
//! [`Stepper::jacobian`] gives `Fx` (state, input) and `Fs` (state, state), [`Stepper::jvp`] gives `Fx dx + Fs ds`.
//! The logits are those of the classifier's head on the current state.

use crate::error::{finite, same};
use crate::grads::Shard;
use crate::layers::{Cell, Direction, Lens};
use crate::model::Model;
use crate::models::Recurrent;
use crate::params::Params;
use crate::tape::{Shape, Tape, Var, Want};
use crate::{Real, Result};

/// Steps through a forward-reading recurrent classifier without attention.
pub struct Stepper<'m, T: Real> {
    net: &'m Recurrent,
    params: &'m Params<T>,
    shard: Shard<T>,
    passes: crate::victim::Queries,
}

/// Derivatives of one step of one item, rows of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Jacobian<T> {
    /// (state, input)
    pub input: Vec<T>,
    /// (state, state)
    pub state: Vec<T>,
}

impl<'m, T: Real> Stepper<'m, T> {
    /// An error for models that need the whole sequence at once.
    pub fn new(model: &'m Model, params: &'m Params<T>) -> Result<Self> {
        params.check(model.layout())?;
        let net = model.recurrent()?;
        net.forward_only()?;
        Ok(Stepper {
            net,
            params,
            shard: Shard::default(),
            passes: Default::default(),
        })
    }

    /// Numbers in a state.
    pub fn state_len(&self) -> usize {
        self.net
            .cells()
            .map(|c| c.units() * if c.has_cell() { 2 } else { 1 })
            .sum()
    }

    /// Numbers in an input.
    pub fn input_len(&self) -> usize {
        self.net.cells().next().map_or(0, Cell::inputs)
    }

    /// The state before the first step.
    pub fn start(&self) -> Vec<T> {
        self.net.start(self.params)
    }

    /// Steps and their derivatives made so far, one for each item.
    pub fn queries(&self) -> crate::victim::Queries {
        self.passes
    }

    /// One step of `items` items: states (items, state) and inputs (items, input) to states.
    pub fn step(&mut self, states: &[T], inputs: &[T]) -> Result<Vec<T>> {
        let (ends, _, _) = self.run(states, inputs, Want::NOTHING)?;
        Ok(self.flat(&ends, states.len() / self.state_len()))
    }

    /// `(Fx^T v, Fs^T v)` of every item.
    pub fn vjp(&mut self, states: &[T], inputs: &[T], v: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        same("v", states.len(), v.len())?;
        let (ends, starts, x) = self.run(states, inputs, Want::INPUT)?;
        let items = states.len() / self.state_len();
        let tape = &mut self.shard.tape;
        scatter(tape, &ends, v, items);
        tape.backward(self.params, &mut self.shard.grads);
        self.passes.backwards += items as u64;
        let dx = self.gradients(&[x], items);
        Ok((dx, self.gradients(&starts, items)))
    }

    /// All derivatives of one step of one item.
    pub fn jacobian(&mut self, state: &[T], input: &[T]) -> Result<Jacobian<T>> {
        let n = self.state_len();
        same("state", n, state.len())?;
        // One copy of the item for each row of the Jacobian.
        let (states, inputs) = (state.repeat(n), input.repeat(n));
        let unit: Vec<T> = (0..n * n)
            .map(|i| if i / n == i % n { T::ONE } else { T::ZERO })
            .collect();
        let (input, state) = self.vjp(&states, &inputs, &unit)?;
        Ok(Jacobian { input, state })
    }

    /// `Fx dx + Fs ds` of one item.
    pub fn jvp(&mut self, state: &[T], input: &[T], ds: &[T], dx: &[T]) -> Result<Vec<T>> {
        same("ds", self.state_len(), ds.len())?;
        same("dx", self.input_len(), dx.len())?;
        let j = self.jacobian(state, input)?;
        let rows = j
            .input
            .chunks_exact(dx.len())
            .zip(j.state.chunks_exact(ds.len()));
        Ok(rows
            .map(|(fx, fs)| crate::simd::dot(fx, dx) + crate::simd::dot(fs, ds))
            .collect())
    }

    /// The logits of every item's state.
    pub fn logits(&mut self, states: &[T]) -> Result<Vec<T>> {
        let (_, logits) = self.head(states, Want::NOTHING)?;
        Ok(self.shard.tape.get(logits).to_vec())
    }

    /// The gradient of `d . logits` with respect to every item's state.
    pub fn logits_vjp(&mut self, states: &[T], d: &[T]) -> Result<Vec<T>> {
        let (starts, logits) = self.head(states, Want::INPUT)?;
        same("d", self.shard.tape.shape(logits).len(), d.len())?;
        self.shard.tape.seed(logits).copy_from_slice(d);
        self.shard.tape.backward(self.params, &mut self.shard.grads);
        let items = states.len() / self.state_len();
        self.passes.backwards += items as u64;
        Ok(self.gradients(&starts, items))
    }

    /// One step on the tape: the values of the new state, of the old state, and the input.
    fn run(&mut self, states: &[T], inputs: &[T], want: Want) -> Result<(Vec<Var>, Vec<Var>, Var)> {
        let (items, starts) = self.place(states, want)?;
        same("inputs", items * self.input_len(), inputs.len())?;
        finite("input", inputs)?;
        let tape = &mut self.shard.tape;
        let first = tape.input(Shape::new(1, items, inputs.len() / items), inputs);
        let lens: Lens = vec![1; items].into();
        let (mut x, mut ends, mut at) = (first, Vec::new(), 0);
        for cell in self.net.cells() {
            let width = if cell.has_cell() { 2 } else { 1 };
            let initial = (starts[at], cell.has_cell().then(|| starts[at + 1]));
            let s = cell.forward(
                tape,
                self.params,
                x,
                &lens,
                Some(initial),
                Direction::Forward,
            );
            ends.extend([Some(s.h), s.c].into_iter().flatten());
            x = s.h;
            at += width;
        }
        Ok((ends, starts, first))
    }

    fn head(&mut self, states: &[T], want: Want) -> Result<(Vec<Var>, Var)> {
        let (_, starts) = self.place(states, want)?;
        let has_cell = self.net.cells().last().is_some_and(Cell::has_cell);
        let top = starts[starts.len() - if has_cell { 2 } else { 1 }];
        Ok((
            starts,
            self.net.head_of(&mut self.shard.tape, self.params, top),
        ))
    }

    /// Resets the tape and puts the parts of the states on it.
    fn place(&mut self, states: &[T], want: Want) -> Result<(usize, Vec<Var>)> {
        let n = self.state_len();
        let items = states.len() / n;
        if items == 0 {
            return Err(crate::Error::Empty {
                what: "list of states",
            });
        }
        same("states", items * n, states.len())?;
        finite("state", states)?;
        self.shard.tape.reset(want);
        self.shard.grads.forget();
        self.passes.forwards += items as u64;
        let parts = self
            .net
            .cells()
            .flat_map(|c| std::iter::repeat_n(c.units(), if c.has_cell() { 2 } else { 1 }));
        let (mut starts, mut at) = (Vec::new(), 0);
        for units in parts {
            let part: Vec<T> = states
                .chunks_exact(n)
                .flat_map(|s| &s[at..at + units])
                .copied()
                .collect();
            starts.push(self.shard.tape.input(Shape::new(1, items, units), &part));
            at += units;
        }
        Ok((items, starts))
    }

    /// Values side by side, (items, all).
    fn flat(&self, parts: &[Var], items: usize) -> Vec<T> {
        let tape = &self.shard.tape;
        let row = |b: usize, v: &Var| {
            tape.get(*v)[b * tape.shape(*v).dim..(b + 1) * tape.shape(*v).dim].to_vec()
        };
        (0..items)
            .flat_map(|b| parts.iter().flat_map(move |v| row(b, v)))
            .collect()
    }

    /// Gradients side by side, zero where none arrived.
    fn gradients(&self, parts: &[Var], items: usize) -> Vec<T> {
        let tape = &self.shard.tape;
        let row = |b: usize, v: &Var| {
            let dim = tape.shape(*v).dim;
            tape.grad(*v)
                .get(b * dim..(b + 1) * dim)
                .map_or_else(|| vec![T::ZERO; dim], <[T]>::to_vec)
        };
        (0..items)
            .flat_map(|b| parts.iter().flat_map(move |v| row(b, v)))
            .collect()
    }
}

/// Adds the parts of `v` to the gradients of the values.
fn scatter<T: Real>(tape: &mut Tape<T>, parts: &[Var], v: &[T], items: usize) {
    let (n, mut at) = (v.len() / items, 0);
    for part in parts {
        let dim = tape.shape(*part).dim;
        for (b, to) in tape.seed(*part).chunks_exact_mut(dim).enumerate() {
            crate::layers::add(to, &v[b * n + at..b * n + at + dim]);
        }
        at += dim;
    }
}
