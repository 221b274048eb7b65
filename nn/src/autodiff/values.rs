//! The numbers of one forward pass: values with their shapes and gradients, in memory that lives across passes.
//!
//! A value is (time, batch, dim), time first. Knows nothing of layers or of the order in which they ran.

use super::layout::Span;
use super::packed_weights::PackedWeights;
use super::shape::{Shape, Want};
use crate::numeric::gemm::Packed;
use crate::numeric::{Real, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

struct Value<T> {
    shape: Shape,
    data: Vec<T>,
    grad: Vec<T>,
    wants: bool,
}

/// The numbers of one forward pass.
pub struct Values<T> {
    values: Vec<Value<T>>,
    spare: BTreeMap<usize, Vec<Vec<T>>>,
    want: Want,
    noise: Option<Stream>,
    first: usize,
    dropouts: u64,
    packs: Option<Arc<PackedWeights<T>>>,
}

impl<T: Real> Default for Values<T> {
    fn default() -> Self {
        Values {
            values: Vec::new(),
            spare: BTreeMap::new(),
            want: Want::NOTHING,
            noise: None,
            first: 0,
            dropouts: 0,
            packs: None,
        }
    }
}

impl<T: Real> Values<T> {
    /// Forgets the last pass and keeps its memory.
    pub(super) fn reset(&mut self, want: Want) {
        self.want = want;
        self.noise = None;
        self.packs = None;
        self.dropouts = 0;
        for value in std::mem::take(&mut self.values) {
            self.recycle(value.data);
            self.recycle(value.grad);
        }
    }

    /// Turns dropout on: `noise` is the stream of this step, `first` the index of this
    /// shard's first item in the batch, so that an item's dropout does not depend on the shards.
    pub fn train(&mut self, noise: Stream, first: usize) {
        self.noise = Some(noise);
        self.first = first;
    }

    /// Whether dropout is on.
    pub(crate) fn trains(&self) -> bool {
        self.noise.is_some()
    }

    /// The stream of the next dropout layer and the first item's index; none outside training.
    pub(crate) fn noise(&mut self) -> Option<(Stream, usize)> {
        self.dropouts += 1;
        self.noise.map(|s| (s.item(self.dropouts), self.first))
    }

    /// Lends weights that were packed beforehand, until the next reset or `None`.
    pub(crate) fn lend(&mut self, packs: Option<Arc<PackedWeights<T>>>) {
        self.packs = packs;
    }

    /// A weight that was packed beforehand, as it is and transposed.
    pub(super) fn packed(&self, span: Span) -> Option<(&Packed<T>, &Packed<T>)> {
        self.packs.as_deref().and_then(|packs| packs.get(span))
    }

    /// Which gradients are wanted.
    pub fn want(&self) -> Want {
        self.want
    }

    /// An input; its gradient is kept when the caller wants input gradients.
    pub fn input(&mut self, shape: Shape, data: &[T]) -> Var {
        let v = self.value(shape, self.want.input);
        self.values[v.0].data.copy_from_slice(&data[..shape.len()]);
        v
    }

    /// A constant: no gradient.
    pub fn constant(&mut self, shape: Shape, data: &[T]) -> Var {
        let v = self.value(shape, false);
        self.values[v.0].data.copy_from_slice(&data[..shape.len()]);
        v
    }

    /// Room for a layer's output or saved numbers, with whatever the memory held before.
    pub fn value(&mut self, shape: Shape, wants: bool) -> Var {
        let data = self.dirty(shape.len());
        self.values.push(Value {
            shape,
            data,
            grad: Vec::new(),
            wants,
        });
        Var(self.values.len() - 1)
    }

    /// Room for an output that depends on `inputs` and, if `trained`, on weights.
    pub fn output(&mut self, shape: Shape, inputs: &[Var], trained: bool) -> Var {
        let wants = (trained && self.want.weights) || inputs.iter().any(|v| self.wants(*v));
        self.value(shape, wants)
    }

    /// Keeps a gradient on the tape as a value, for products that are computed later.
    pub fn keep(&mut self, shape: Shape, data: Vec<T>) -> Var {
        self.values.push(Value {
            shape,
            data,
            grad: Vec::new(),
            wants: false,
        });
        Var(self.values.len() - 1)
    }

    /// Whether a gradient must reach this value.
    pub fn wants(&self, v: Var) -> bool {
        self.values[v.0].wants
    }

    /// The size of a value.
    pub fn shape(&self, v: Var) -> Shape {
        self.values[v.0].shape
    }

    /// The numbers of a value.
    pub fn get(&self, v: Var) -> &[T] {
        &self.values[v.0].data
    }

    /// Takes the numbers out, to read or write beside others; give them back with [`Values::put`].
    pub fn take(&mut self, v: Var) -> Vec<T> {
        std::mem::take(&mut self.values[v.0].data)
    }

    /// Gives back what [`Values::take`] took.
    pub fn put(&mut self, v: Var, data: Vec<T>) {
        self.values[v.0].data = data;
    }

    /// The gradient of a value after the backward pass; empty when none reached it.
    pub fn grad(&self, v: Var) -> &[T] {
        &self.values[v.0].grad
    }

    /// Takes the gradient out; `None` when none reached this value.
    pub fn take_grad(&mut self, v: Var) -> Option<Vec<T>> {
        let grad = std::mem::take(&mut self.values[v.0].grad);
        (!grad.is_empty()).then_some(grad)
    }

    /// The gradient of a value to add to, zero at first; `None` when it is not wanted.
    /// Give it back with [`Values::put_grad`].
    pub fn grad_to_add(&mut self, v: Var) -> Option<Vec<T>> {
        if !self.wants(v) {
            return None;
        }
        let grad = self.take_grad(v);
        Some(grad.unwrap_or_else(|| self.zeros(self.shape(v).len())))
    }

    /// Adds to the gradient of a value, if it is wanted.
    pub fn add_grad(&mut self, v: Var, grad: &[T]) {
        if let Some(mut to) = self.grad_to_add(v) {
            for (t, g) in to.iter_mut().zip(grad) {
                *t += *g;
            }
            self.put_grad(v, to);
        }
    }

    /// Gives back a gradient.
    pub fn put_grad(&mut self, v: Var, grad: Vec<T>) {
        self.values[v.0].grad = grad;
    }

    /// The gradient of an output, where an objective writes its own.
    pub fn seed(&mut self, v: Var) -> &mut [T] {
        if self.values[v.0].grad.is_empty() {
            self.values[v.0].grad = self.zeros(self.shape(v).len());
        }
        &mut self.values[v.0].grad
    }

    /// Memory of that length with any contents.
    pub fn dirty(&mut self, len: usize) -> Vec<T> {
        // Spare memory is filed by capacity; up to twice the need is close enough when lengths vary.
        let fit = self
            .spare
            .range_mut(len..=2 * len)
            .find(|(_, v)| !v.is_empty());
        let mut v = fit
            .and_then(|(_, v)| v.pop())
            .unwrap_or_else(|| Vec::with_capacity(len));
        v.resize(len, T::ZERO);
        v
    }

    /// Memory of that length, all zero.
    pub fn zeros(&mut self, len: usize) -> Vec<T> {
        let mut v = self.dirty(len);
        v.fill(T::ZERO);
        v
    }

    /// How many numbers there is memory for, in use or spare.
    pub(crate) fn held(&self) -> usize {
        let used = self.values.iter();
        let used = used.map(|v| v.data.capacity() + v.grad.capacity());
        let spare = self.spare.iter().map(|(size, all)| size * all.len());
        used.sum::<usize>() + spare.sum::<usize>()
    }

    /// Keeps memory for the next user.
    pub fn recycle(&mut self, data: Vec<T>) {
        if data.capacity() > 0 {
            self.spare.entry(data.capacity()).or_default().push(data);
        }
    }
}
