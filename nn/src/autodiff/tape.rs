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

    /// Records the backward half of what just ran, if anybody will want it.
    pub fn record(&mut self, output: Var, op: impl Op<T> + 'static) {
        if self.wants(output) {
            self.ops.push(Box::new(op));
        }
    }

    /// Replays the record backward from the gradients that were seeded.
    pub fn backward(&mut self, params: &Params<T>, grads: &mut Grads<T>) {
        for op in std::mem::take(&mut self.ops).into_iter().rev() {
            op.backward(self, params, grads);
        }
    }
}
