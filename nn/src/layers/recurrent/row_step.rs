//! One step of a recurrent layer for items as rows, with the weights packed once for all steps. The equations are those
//! of a kind of layer ([`StepEquations`]), with the element-wise kernels of the whole-sequence layer, so a step has the
//! bits of the same step there.

use super::packed_map::PackedMap;
use crate::numeric::Real;

/// What the last step left, whatever the kind of layer.
#[derive(Default)]
pub struct StepMemory<T> {
    /// Hidden units.
    pub units: usize,
    /// The hidden states of the last step, and their product with `U`: attacks ask for many inputs of one state.
    held: (Vec<T>, Vec<T>),
    /// The state before, for each input; the cell state is empty where there is none.
    pub before: (Vec<T>, Vec<T>),
    /// Gate activations.
    pub gates: Vec<T>,
    /// The hidden state after.
    pub h: Vec<T>,
    /// The cell state after.
    pub c: Vec<T>,
    /// A length of 1 for every item, for kernels that read lengths.
    pub ones: Vec<usize>,
    /// The gradient before the activations.
    pub slope: Vec<T>,
}

/// The equations of one kind of layer.
pub trait StepEquations<T: Real>: Send {
    /// The maps of input and hidden state to the gates: `W` and `U`.
    fn maps(&self) -> [&PackedMap<T>; 2];

    /// From the product `h U` of every item, and `x`, to the state after. What the derivatives need is kept.
    fn forward(&mut self, memory: &mut StepMemory<T>, recurrent: &[T], x: &[T], copies: usize);

    /// From the gradients of the state after to [`StepMemory::slope`]; `dh`, `dc` become those of the state before but
    /// for the part through `U`. Adds to `dx` what does not go through `W`.
    fn backward(&mut self, memory: &mut StepMemory<T>, dh: &mut [T], dc: &mut [T], dx: &mut [T]);

    /// The tangent of the new state (hidden, cell) of one item; the cell part is empty where there is none.
    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>);
}

/// Tangents of the input and of the state before a step.
pub struct InputTangent<'a, T> {
    /// Of the input.
    pub dx: &'a [T],
    /// Of the hidden state.
    pub dh: &'a [T],
    /// Of the cell state.
    pub dc: &'a [T],
    /// `dx W + dh U`
    pub gates: &'a [T],
}

/// A layer with packed weights, and what its last step left.
pub struct RowStep<T: Real, E> {
    equations: E,
    memory: StepMemory<T>,
}

impl<T: Real, E: StepEquations<T>> RowStep<T, E> {
    /// A layer of this many units.
    pub fn new(equations: E, units: usize) -> Self {
        RowStep {
            equations,
            memory: StepMemory {
                units,
                ..StepMemory::default()
            },
        }
    }

    /// The hidden state after the last step.
    pub fn h(&self) -> &[T] {
        &self.memory.h
    }

    /// The cell state after the last step, empty where there is none.
    pub fn c(&self) -> &[T] {
        &self.memory.c
    }

    /// From `x` (copies, items, inputs), `h` and `c` (items, units) to the states after
    /// (copies, items, units): every copy starts from the same states.
    pub fn forward(&mut self, x: &[T], h: &[T], c: &[T], copies: usize) {
        let memory = &mut self.memory;
        let n = memory.units;
        let (items, row) = (copies * h.len() / n, copies * h.len());
        let same = memory.held.0 == h;
        if !same {
            let [_, recurrent] = self.equations.maps();
            recurrent.set(&mut memory.held.1, h, h.len() / n);
            repeat(&mut memory.held.0, h, 1);
        }
        if !same || memory.before.0.len() != row {
            repeat(&mut memory.before.0, h, copies);
        }
        repeat(&mut memory.before.1, c, copies);
        memory.ones.resize(items, 1);
        memory.h.resize(row, T::ZERO);
        let recurrent = std::mem::take(&mut memory.held.1);
        self.equations.forward(memory, &recurrent, x, copies);
        memory.held.1 = recurrent;
    }

    /// `dh`, `dc` of the state after become those of the state before, and `dx` that of the input.
    /// Unless `state` is wanted, `dh` is left unfinished, which spares a product.
    pub fn backward(&mut self, dh: &mut [T], dc: &mut [T], dx: &mut Vec<T>, state: bool) {
        let memory = &mut self.memory;
        let [input, _] = self.equations.maps();
        let items = memory.ones.len();
        dx.clear();
        dx.resize(items * input.turned.columns(), T::ZERO);
        let size = memory.gates.len().max(items * memory.units);
        memory.slope.resize(size, T::ZERO);
        self.equations.backward(memory, dh, dc, dx);
        let [input, recurrent] = self.equations.maps();
        if state {
            recurrent.back(dh, &memory.slope, items);
        }
        input.back(dx, &memory.slope, items);
    }

    /// The tangent of the new state (hidden, cell) of one item.
    pub fn tangent(&self, dx: &[T], dh: &[T], dc: &[T]) -> (Vec<T>, Vec<T>) {
        let [input, recurrent] = self.equations.maps();
        let mut p = Vec::new();
        input.set(&mut p, dx, 1);
        recurrent.add(&mut p, dh, 1);
        let of = InputTangent {
            dx,
            dh,
            dc,
            gates: &p,
        };
        self.equations.tangent(&self.memory, &of)
    }
}

/// Fills `to` with `from`, repeated this many times, reusing its memory.
pub(in crate::layers) fn repeat<T: Copy>(to: &mut Vec<T>, from: &[T], copies: usize) {
    to.clear();
    for _ in 0..copies {
        to.extend_from_slice(from);
    }
}
