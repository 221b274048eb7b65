//! A recurrent classifier one step at a time, for attacks that run while the sequence arrives.
//!
//! The state `s` of an item is `[h, c]` of every layer, one after the other (no `c` outside LSTMs).
//! `s' = F(s, x)`; with `v` of the size of a state, [`Stepper::vjp`] gives `Fx^T v` and `Fs^T v`,
//! [`Stepper::jacobian`] gives `Fx` (state, input) and `Fs` (state, state), [`Stepper::jvp`] gives `Fx dx + Fs ds`.
//! The logits are those of the classifier's head on the current state.
//!
//! Weights are packed once, when the stepper is made: such attacks take thousands of steps.

mod head;
mod stepping;

pub use stepping::Stepping;

use crate::error::{finite, same};
use crate::layers::OneStep;
use crate::model::Model;
use crate::models::Recurrent;
use crate::params::Params;
use crate::victim::Queries;
use crate::{Error, Real, Result};
use head::Head;

/// Steps through a forward-reading recurrent classifier without attention.
pub struct Stepper<'m, T: Real> {
    net: &'m Recurrent,
    params: &'m Params<T>,
    layers: Vec<OneStep<T>>,
    head: Head<T>,
    passes: Queries,
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
            layers: net.cells().map(|c| OneStep::new(*c, params)).collect(),
            head: Head::new(net.head(), params),
            passes: Queries::default(),
        })
    }

    /// Numbers in a state.
    pub fn state_len(&self) -> usize {
        self.layers.iter().map(|l| l.parts().0 + l.parts().1).sum()
    }

    /// Numbers in an input.
    pub fn input_len(&self) -> usize {
        self.net.cells().next().map_or(0, |c| c.inputs())
    }

    /// The state before the first step.
    pub fn start(&self) -> Vec<T> {
        self.net.start(self.params)
    }

    /// Steps and their derivatives made so far, one for each item.
    pub fn queries(&self) -> Queries {
        self.passes
    }

    /// One step of `items` items: states (items, state) and inputs (items, input) to states.
    pub fn step(&mut self, states: &[T], inputs: &[T]) -> Result<Vec<T>> {
        let items = self.run(states, inputs, 1)?;
        let n = self.state_len();
        let (mut out, mut at) = (vec![T::ZERO; states.len()], 0);
        for layer in &self.layers {
            for part in [&layer.h, &layer.c] {
                at += spread(&mut out, n, at, part, items);
            }
        }
        Ok(out)
    }

    /// `(Fx^T v, Fs^T v)` of every item.
    pub fn vjp(&mut self, states: &[T], inputs: &[T], v: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        self.pulled(states, inputs, v, 1, true)
    }

    /// `Fx^T v` of every item, without the part of the state, for `copies` inputs of each state: `inputs` and the answer
    /// are (copies, items, input). What depends on the states alone is made once.
    pub fn input_vjps(
        &mut self,
        states: &[T],
        inputs: &[T],
        v: &[T],
        copies: usize,
    ) -> Result<Vec<T>> {
        Ok(self.pulled(states, inputs, v, copies, false)?.0)
    }

    /// `Fx^T v`, and `Fs^T v` if it is wanted.
    fn pulled(
        &mut self,
        states: &[T],
        inputs: &[T],
        v: &[T],
        copies: usize,
        state: bool,
    ) -> Result<(Vec<T>, Vec<T>)> {
        same("v", states.len(), v.len())?;
        finite("v", v)?;
        let items = self.run(states, inputs, copies)?;
        self.passes.backwards += items as u64;
        let (n, mut end) = (self.state_len(), self.state_len());
        let (mut ds, mut dx) = (Vec::new(), Vec::new());
        if state {
            ds.resize(copies * states.len(), T::ZERO);
        }
        for k in (0..self.layers.len()).rev() {
            let (units, cells) = self.layers[k].parts();
            let mut dc = gather(v, n, end - cells, cells, copies);
            let mut dh = gather(v, n, end - cells - units, units, copies);
            // What the layer above read was this layer's hidden state.
            crate::layers::add(&mut dh, &dx);
            let width = if k == 0 {
                self.net.cells().next().map_or(0, |c| c.inputs())
            } else {
                self.layers[k - 1].parts().0
            };
            dx.clear();
            dx.resize(items * width, T::ZERO);
            self.layers[k].backward(&mut dh, &mut dc, &mut dx, items, state);
            if state {
                spread(&mut ds, n, end - cells, &dc, items);
                spread(&mut ds, n, end - cells - units, &dh, items);
            }
            end -= units + cells;
        }
        Ok((dx, ds))
    }

    /// All derivatives of one step of one item; billed as a step and its gradient for each row.
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

    /// `Fx dx + Fs ds` of one item, forward through the step: no Jacobian is made.
    pub fn jvp(&mut self, state: &[T], input: &[T], ds: &[T], dx: &[T]) -> Result<Vec<T>> {
        same("state", self.state_len(), state.len())?;
        same("ds", self.state_len(), ds.len())?;
        same("dx", self.input_len(), dx.len())?;
        finite("ds", ds)?;
        finite("dx", dx)?;
        self.run(state, input, 1)?;
        let (mut moved, mut at) = (Vec::with_capacity(ds.len()), 0);
        let mut below = dx.to_vec();
        for layer in &self.layers {
            let (units, cells) = layer.parts();
            let (dh, dc) = ds[at..at + units + cells].split_at(units);
            let (h, c) = layer.tangent(&below, dh, dc);
            moved.extend_from_slice(&h);
            moved.extend(c);
            below = h;
            at += units + cells;
        }
        Ok(moved)
    }

    /// The logits of every item's state.
    pub fn logits(&mut self, states: &[T]) -> Result<Vec<T>> {
        let items = self.check(states)?;
        self.passes.forwards += items as u64;
        let (at, units) = self.top();
        let h = gather(states, self.state_len(), at, units, 1);
        Ok(self.head.forward(h, items))
    }

    /// The gradient of `d . logits` with respect to every item's state.
    pub fn logits_vjp(&mut self, states: &[T], d: &[T]) -> Result<Vec<T>> {
        self.logits_pull(states, |_| d.to_vec())
    }

    /// The same with `d` a function of the logits (items, classes), in one pass.
    pub fn logits_pull(&mut self, states: &[T], d: impl FnOnce(&[T]) -> Vec<T>) -> Result<Vec<T>> {
        let logits = self.logits(states)?;
        let d = d(&logits);
        same("d", logits.len(), d.len())?;
        finite("d", &d)?;
        let items = states.len() / self.state_len();
        self.passes.backwards += items as u64;
        let mut ds = vec![T::ZERO; states.len()];
        let dh = self.head.backward(&d, items);
        spread(&mut ds, self.state_len(), self.top().0, &dh, items);
        Ok(ds)
    }

    /// Where in a state the hidden part of the top layer is.
    fn top(&self) -> (usize, usize) {
        let (units, cells) = self.layers.last().map_or((0, 0), OneStep::parts);
        (self.state_len() - units - cells, units)
    }

    /// All layers forward, every state with so many inputs; returns the number of steps.
    fn run(&mut self, states: &[T], inputs: &[T], copies: usize) -> Result<usize> {
        let (items, n) = (copies * self.check(states)?, self.state_len());
        same("inputs", items * self.input_len(), inputs.len())?;
        finite("input", inputs)?;
        self.passes.forwards += items as u64;
        let mut at = 0;
        for k in 0..self.layers.len() {
            let (below, layer) = self.layers.split_at_mut(k);
            let (x, (units, cells)) = (below.last().map_or(inputs, |l| &l.h), layer[0].parts());
            let h = gather(states, n, at, units, 1);
            let c = gather(states, n, at + units, cells, 1);
            layer[0].forward(x, &h, &c, copies);
            at += units + cells;
        }
        Ok(items)
    }

    /// The number of items.
    fn check(&self, states: &[T]) -> Result<usize> {
        let n = self.state_len();
        if states.is_empty() {
            return Err(Error::Empty {
                what: "list of states",
            });
        }
        let items = states.len().div_ceil(n);
        same("states", items * n, states.len())?;
        finite("state", states)?;
        Ok(items)
    }
}

/// Columns `at..at + width` of rows of `n` numbers, all of them so many times.
fn gather<T: Copy>(rows: &[T], n: usize, at: usize, width: usize, copies: usize) -> Vec<T> {
    let mut part = Vec::with_capacity(copies * rows.len() / n * width);
    for _ in 0..copies {
        for row in rows.chunks_exact(n) {
            part.extend_from_slice(&row[at..at + width]);
        }
    }
    part
}

/// Puts `part` at column `at` of rows of `n` numbers; returns its width.
fn spread<T: Copy>(rows: &mut [T], n: usize, at: usize, part: &[T], items: usize) -> usize {
    let width = part.len() / items;
    for b in 0..items {
        rows[b * n + at..][..width].copy_from_slice(&part[b * width..(b + 1) * width]);
    }
    width
}
