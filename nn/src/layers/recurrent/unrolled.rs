//! What a recurrent layer runs over: a sequence, the states before it, and the order of reading.

use super::states::Direction;
use crate::autodiff::{Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::alike::rows_equal;
use crate::numeric::Real;
use std::ops::Range;

/// A sequence with the states before its first step.
#[derive(Clone, Debug)]
pub struct Unrolled {
    /// (time, batch, inputs)
    pub x: Var,
    /// Steps of each item.
    pub lens: Lens,
    /// The hidden state to start from, (1, batch, units); zero when there is none.
    pub h0: Option<Var>,
    /// The cell state to start from, where the layer has one.
    pub c0: Option<Var>,
    /// The order in which steps are read.
    pub direction: Direction,
}

/// What a layer that is asked for its hidden states alone must know beside the sequence, as in [`Unrolled`].
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Steps of each item.
    pub lens: &'a [usize],
    /// The hidden state to start from, zero when there is none.
    pub h0: Option<Var>,
    /// The cell state to start from.
    pub c0: Option<Var>,
    /// The order in which steps are read.
    pub direction: Direction,
}

impl Unrolled {
    /// Room for the hidden states, (time, batch, units).
    pub(in crate::layers) fn output<T: Real>(&self, tape: &mut Tape<T>, units: usize) -> Var {
        let inputs: Vec<Var> = [Some(self.x), self.h0, self.c0]
            .into_iter()
            .flatten()
            .collect();
        let shape = tape.shape(self.x).with_dim(units);
        tape.output(shape, &inputs, true)
    }

    /// Steps in order of reading, each with the one before it.
    pub(in crate::layers) fn steps(
        &self,
        shape: Shape,
    ) -> impl DoubleEndedIterator<Item = (usize, Option<usize>)> {
        let (direction, time) = (self.direction, shape.time);
        direction
            .steps(time)
            .map(move |t| (t, direction.before(t, time)))
    }

    /// Whether a step has a state before it that may differ from zero.
    pub(in crate::layers) fn recurs(&self, before: Option<usize>) -> bool {
        before.is_some() || self.h0.is_some()
    }

    /// Whether all items start from the same states, of `units` numbers each, and are of one length.
    pub(in crate::layers) fn starts_alike<T: Real>(
        &self,
        units: usize,
        h0: &[T],
        c0: &[T],
    ) -> bool {
        self.lens.windows(2).all(|pair| pair[0] == pair[1])
            && rows_equal(h0, units)
            && rows_equal(c0, units)
    }

    /// Adds the gradients of the states before the first step.
    pub(in crate::layers) fn add_initial_grads<T: Real>(
        &self,
        tape: &mut Tape<T>,
        dh: &[T],
        dc: &[T],
    ) {
        for (v, d) in [(self.h0, dh), (self.c0, dc)] {
            if let Some(v) = v {
                tape.add_grad(v, d);
            }
        }
    }
}

/// The rows of one step, for element-wise kernels.
#[derive(Clone, Copy)]
pub(in crate::layers) struct StepRows<'a> {
    pub t: usize,
    /// Hidden units.
    pub n: usize,
    pub lens: &'a [usize],
}

impl<'a> StepRows<'a> {
    /// A single step of items that have lengths of 1.
    pub fn single(n: usize, ones: &'a [usize]) -> Self {
        StepRows {
            t: 0,
            n,
            lens: ones,
        }
    }

    /// Whether this step lies beyond the item's length: its state is carried unchanged.
    #[inline(always)]
    pub fn is_padding(&self, item: usize) -> bool {
        self.t >= self.lens[item]
    }

    /// The item's row of one number per unit.
    #[inline(always)]
    pub fn row(&self, item: usize) -> Range<usize> {
        item * self.n..(item + 1) * self.n
    }

    /// The item's row, with this many numbers per unit.
    #[inline(always)]
    pub fn wide(&self, item: usize, numbers: usize) -> Range<usize> {
        item * numbers * self.n..(item + 1) * numbers * self.n
    }
}
