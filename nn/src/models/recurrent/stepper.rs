//! A recurrent classifier one step at a time, for attacks that run while the sequence arrives.
//!
//! The state `s` of an item is `[h, c]` of every layer, one after the other (no `c` outside LSTMs).
//! The logits are those of the classifier's head on the current state.
//! Weights are packed once, when the stepper is made: such attacks take thousands of steps.

use super::head::Head;
use crate::autodiff::Params;
use crate::error::{Error, Result, same};
use crate::layers::{Dense, LearnedState, OneStep, RecurrentCell, add};
use crate::models::queries::Queries;
use crate::models::step_by_step::{StepByStep, Weigh};
use crate::numeric::{Real, finite};

/// Layers with packed weights, and what their last step left.
pub(super) struct RecurrentStepper<T: Real, C: RecurrentCell> {
    layers: Vec<OneStep<T, C>>,
    head: Head<T>,
    start: Vec<T>,
    inputs: usize,
    passes: Queries,
    room: Room<T>,
}

/// Memory for what lasts one call: states of one layer, gradients, and results.
#[derive(Default)]
struct Room<T> {
    h: Vec<T>,
    c: Vec<T>,
    dx: Vec<T>,
    ds: Vec<T>,
    states: Vec<T>,
}

impl<T: Real, C: RecurrentCell> RecurrentStepper<T, C> {
    /// Recurrent layers with their initial states if these are learned, and the dense layers of the head.
    pub fn new<'m>(
        params: &Params<T>,
        layers: impl Iterator<Item = (&'m C, Option<&'m LearnedState>)>,
        head: impl Iterator<Item = &'m Dense>,
    ) -> Self {
        let (mut steps, mut start, mut inputs) = (Vec::new(), Vec::new(), None);
        for (cell, learned) in layers {
            let zeros = cell.units() * if C::CELL_STATE { 2 } else { 1 };
            start.extend(learned.map_or_else(|| vec![T::ZERO; zeros], |s| s.values(params)));
            inputs.get_or_insert(cell.inputs());
            steps.push(OneStep::new(cell, params));
        }
        RecurrentStepper {
            layers: steps,
            head: Head::new(head, params),
            start,
            inputs: inputs.unwrap_or(0),
            passes: Queries::default(),
            room: Room::default(),
        }
    }

    /// Where in a state the hidden part of the top layer is.
    fn top(&self) -> (usize, usize) {
        let (units, cells) = self.layers.last().map_or((0, 0), OneStep::parts);
        (self.state_len() - units - cells, units)
    }

    /// Runs all layers forward, each state with this many inputs; returns the number of steps.
    fn run(&mut self, states: &[T], inputs: &[T], copies: usize) -> Result<usize> {
        let (items, n) = (copies * self.check(states)?, self.state_len());
        same("inputs", items * self.input_len(), inputs.len())?;
        finite("input", inputs)?;
        self.passes.forwards += items as u64;
        let mut at = 0;
        for k in 0..self.layers.len() {
            let (below, layer) = self.layers.split_at_mut(k);
            let (x, (units, cells)) = (below.last().map_or(inputs, OneStep::h), layer[0].parts());
            let Room { h, c, .. } = &mut self.room;
            let h = part(h, states, n, at, units);
            let c = part(c, states, n, at + units, cells);
            layer[0].forward(x, h, c, copies);
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

impl<T: Real, C: RecurrentCell> StepByStep<T> for RecurrentStepper<T, C> {
    fn state_len(&self) -> usize {
        self.start.len()
    }

    fn input_len(&self) -> usize {
        self.inputs
    }

    fn start(&self) -> Vec<T> {
        self.start.clone()
    }

    fn queries(&self) -> Queries {
        self.passes
    }

    fn step(&mut self, states: &[T], inputs: &[T]) -> Result<&[T]> {
        let items = self.run(states, inputs, 1)?;
        let n = self.state_len();
        if let [layer] = &self.layers[..]
            && layer.c().is_empty()
        {
            return Ok(layer.h());
        }
        let (out, mut at) = (&mut self.room.states, 0);
        out.resize(states.len(), T::ZERO);
        for layer in &self.layers {
            for part in [layer.h(), layer.c()] {
                at += spread(out, n, at, part, items);
            }
        }
        Ok(out)
    }

    fn vjp(
        &mut self,
        states: &[T],
        inputs: &[T],
        v: &[T],
        copies: usize,
        state: bool,
    ) -> Result<(&[T], &[T])> {
        same("v", states.len(), v.len())?;
        finite("v", v)?;
        let items = self.run(states, inputs, copies)?;
        self.passes.backwards += items as u64;
        let (n, mut end) = (self.state_len(), self.state_len());
        let Room {
            h: dh,
            c: dc,
            dx,
            ds,
            ..
        } = &mut self.room;
        dx.clear();
        ds.resize(if state { copies * states.len() } else { 0 }, T::ZERO);
        for k in (0..self.layers.len()).rev() {
            let (units, cells) = self.layers[k].parts();
            gather(dc, v, n, end - cells, cells, copies);
            gather(dh, v, n, end - cells - units, units, copies);
            // What the layer above read was this layer's hidden state.
            add(dh, dx);
            self.layers[k].backward(dh, dc, dx, state);
            if state {
                spread(ds, n, end - cells, dc, items);
                spread(ds, n, end - cells - units, dh, items);
            }
            end -= units + cells;
        }
        Ok((dx, ds))
    }

    fn jvp(&mut self, state: &[T], input: &[T], ds: &[T], dx: &[T]) -> Result<Vec<T>> {
        same("state", self.state_len(), state.len())?;
        same("ds", self.state_len(), ds.len())?;
        same("dx", self.input_len(), dx.len())?;
        finite("ds", ds)?;
        finite("dx", dx)?;
        self.run(state, input, 1)?;
        let (mut moved, mut at) = (Vec::with_capacity(ds.len()), 0);
        let mut below = dx.to_vec();
        for layer in &mut self.layers {
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

    fn logits(&mut self, states: &[T]) -> Result<&[T]> {
        let items = self.check(states)?;
        self.passes.forwards += items as u64;
        let (at, units) = self.top();
        let n = self.state_len();
        let h = part(&mut self.room.h, states, n, at, units);
        Ok(self.head.forward(h, items))
    }

    fn logits_vjp(&mut self, states: &[T], weigh: &mut Weigh<'_, T>) -> Result<&[T]> {
        let items = self.check(states)?;
        self.passes.forwards += items as u64;
        let (n, (at, units)) = (self.state_len(), self.top());
        let h = part(&mut self.room.h, states, n, at, units);
        let logits = self.head.forward(h, items);
        weigh(logits)?;
        finite("d", logits)?;
        self.passes.backwards += items as u64;
        let dh = self.head.backward(items);
        if units == n {
            return Ok(dh);
        }
        let ds = &mut self.room.ds;
        ds.clear();
        ds.resize(states.len(), T::ZERO);
        spread(ds, n, at, dh, items);
        Ok(ds)
    }
}

/// Columns `at..at + width` of rows of `n` numbers, copied only if they are not all there is.
fn part<'a, T: Copy>(
    room: &'a mut Vec<T>,
    rows: &'a [T],
    n: usize,
    at: usize,
    width: usize,
) -> &'a [T] {
    if width == n {
        return rows;
    }
    gather(room, rows, n, at, width, 1);
    room
}

/// Columns `at..at + width` of rows of `n` numbers, repeated this many times, in the memory of `part`.
fn gather<T: Copy>(
    part: &mut Vec<T>,
    rows: &[T],
    n: usize,
    at: usize,
    width: usize,
    copies: usize,
) {
    part.clear();
    for _ in 0..copies {
        if width == n {
            part.extend_from_slice(rows);
            continue;
        }
        for row in rows.chunks_exact(n) {
            part.extend_from_slice(&row[at..at + width]);
        }
    }
}

/// Puts `part` at column `at` of rows of `n` numbers; returns its width.
fn spread<T: Copy>(rows: &mut [T], n: usize, at: usize, part: &[T], items: usize) -> usize {
    let width = part.len() / items;
    if width == n {
        rows.copy_from_slice(part);
        return width;
    }
    for b in 0..items {
        rows[b * n + at..][..width].copy_from_slice(&part[b * width..(b + 1) * width]);
    }
    width
}
