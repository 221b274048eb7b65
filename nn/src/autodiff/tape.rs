//! A record of whole layers, not of single operations: what ran forward, replayed backward.
//!
//! A recurrent layer over all its steps is one entry, so the record costs nothing per step. Every gradient is derived
//! by hand in the layer's file; this file only keeps the order. The numbers are [`Values`].

use super::grads::Grads;
use super::params::Params;
use super::shape::Want;
use super::values::{Values, Var};
use crate::numeric::Real;
use std::ops::{Deref, DerefMut};

/// The backward half of a layer.
pub trait Op<T: Real>: Send + Sync {
    /// Takes the gradient of its outputs from the tape and adds those of its inputs and weights.
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>);
}

/// The backward half of a layer with one output.
struct OneOutput<F> {
    y: Var,
    backward: F,
}

impl<T: Real, F> Op<T> for OneOutput<F>
where
    F: Fn(&mut Tape<T>, &Params<T>, &mut Grads<T>, &mut [T]) + Send + Sync,
{
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        if let Some(mut dy) = tape.take_grad(self.y) {
            (self.backward)(tape, params, grads, &mut dy);
            tape.recycle(dy);
        }
    }
}

/// The record of one forward pass.
pub struct Tape<T: Real> {
    values: Values<T>,
    ops: Vec<Box<dyn Op<T>>>,
}

impl<T: Real> Default for Tape<T> {
    fn default() -> Self {
        Tape {
            values: Values::default(),
            ops: Vec::new(),
        }
    }
}

impl<T: Real> Deref for Tape<T> {
    type Target = Values<T>;

    fn deref(&self) -> &Values<T> {
        &self.values
    }
}

impl<T: Real> DerefMut for Tape<T> {
    fn deref_mut(&mut self) -> &mut Values<T> {
        &mut self.values
    }
}

impl<T: Real> Tape<T> {
    /// Forgets the last pass and keeps its memory.
    pub fn reset(&mut self, want: Want) {
        self.ops.clear();
        self.values.reset(want);
    }

    /// Records the backward half of what just ran, if its gradient is wanted.
    pub fn record(&mut self, output: Var, op: impl Op<T> + 'static) {
        if self.wants(output) {
            self.ops.push(Box::new(op));
        }
    }

    /// Records the backward half of a layer with one output `y`: it is called with the gradient of `y`, if one reached it.
    pub fn record_output(
        &mut self,
        y: Var,
        backward: impl Fn(&mut Self, &Params<T>, &mut Grads<T>, &mut [T]) + Send + Sync + 'static,
    ) {
        self.record(y, OneOutput { y, backward });
    }

    /// Adds to the gradient of `x`, if it is wanted.
    pub fn add_grad_with(&mut self, x: Var, add: impl FnOnce(&Self, &mut [T])) {
        if let Some(mut dx) = self.grad_to_add(x) {
            add(self, &mut dx);
            self.put_grad(x, dx);
        }
    }

    /// Replays the record backward from the gradients that were seeded.
    pub fn backward(&mut self, params: &Params<T>, grads: &mut Grads<T>) {
        for op in std::mem::take(&mut self.ops).into_iter().rev() {
            op.backward(self, params, grads);
        }
    }
}
