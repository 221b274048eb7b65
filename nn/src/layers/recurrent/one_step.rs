//! One step of a recurrent layer, forward and both ways of differentiating, with the weights packed once for all steps.
//!
//! `forward` keeps what the derivatives need. `backward` turns the gradient of the new state into those of the old
//! state and of the input; `tangent` turns tangents `dx`, `dh`, `dc` of input and state into that of the new state.
//! The equations are those of a kind of layer ([`StepEquations`]), with the element-wise kernels of the whole-sequence
//! layer, so a step has the bits of the same step there.

use super::columns::{Columns, from_columns, to_columns};
use super::step_map::StepMap;
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::{Kernel, Lanes};

/// What the last step left, whatever the kind of layer.
#[derive(Default)]
pub struct StepMemory<T> {
    /// Hidden units.
    pub units: usize,
    /// Items as linear maps see them: of columns, filled up to whole vectors.
    pub items: usize,
    /// Units in a row as element-wise kernels see it: of columns there is one row, with the first unit of all items,
    /// then the second one.
    pub row: usize,
    /// A length of 1 for every such row, for kernels that read lengths.
    pub ones: Vec<usize>,
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
    /// The gradient before the activations.
    pub slope: Vec<T>,
}

impl<T: Real> StepMemory<T> {
    /// How far apart two numbers of an item are, and how often a number that all items share stands side by side:
    /// 1, and of columns as many as there are items.
    #[inline]
    pub fn beside(&self) -> usize {
        self.row / self.units
    }

    /// The numbers of the first item.
    pub fn first(&self, numbers: &[T]) -> Vec<T> {
        let numbers = numbers.iter().step_by(self.beside());
        numbers.copied().collect()
    }

    /// The step itself, from the states before and their product with `U`.
    #[inline(always)]
    fn forward<V: Lanes<T = T>>(
        &mut self,
        equations: &mut impl StepEquations<T>,
        x: &[T],
        copies: usize,
    ) {
        let size = self.items * self.units;
        self.h.resize(size, T::ZERO);
        self.ones.resize(size / self.row, 1);
        let recurrent = std::mem::take(&mut self.held.1);
        equations.forward::<V>(self, &recurrent, x, copies);
        self.held.1 = recurrent;
    }

    /// Back through it.
    #[inline(always)]
    fn backward<V: Lanes<T = T>>(
        &mut self,
        equations: &mut impl StepEquations<T>,
        dh: &mut [T],
        dc: &mut [T],
        dx: &mut [T],
        state: bool,
    ) {
        let size = self.gates.len().max(self.items * self.units);
        self.slope.resize(size, T::ZERO);
        equations.backward::<V>(self, dh, dc, dx);
        let [input, recurrent] = equations.maps();
        if state {
            recurrent.back::<V>(dh, &self.slope, self.items);
        }
        input.back::<V>(dx, &self.slope, self.items);
    }
}

/// The equations of one kind of layer.
pub trait StepEquations<T: Real>: Send {
    /// The maps of input and hidden state to the gates: `W` and `U`.
    fn maps(&self) -> [&StepMap<T>; 2];

    /// From the product `h U` of every item, and `x`, to the state after. What the derivatives need is kept.
    fn forward<V: Lanes<T = T>>(
        &mut self,
        memory: &mut StepMemory<T>,
        recurrent: &[T],
        x: &[T],
        copies: usize,
    );

    /// From the gradients of the state after to [`StepMemory::slope`]; `dh`, `dc` become those of the state before but
    /// for the part through `U`. Adds to `dx` what does not go through `W`.
    fn backward<V: Lanes<T = T>>(
        &mut self,
        memory: &mut StepMemory<T>,
        dh: &mut [T],
        dc: &mut [T],
        dx: &mut [T],
    );

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
pub struct OneStep<T: Real, E> {
    equations: E,
    memory: StepMemory<T>,
    columns: Option<Columns<T>>,
    cell_state: bool,
}

impl<T: Real, E: StepEquations<T>> OneStep<T, E> {
    /// A layer of this many units.
    pub fn new(equations: E, units: usize, cell_state: bool) -> Self {
        let columns = matches!(equations.maps()[0], StepMap::Columns(_));
        OneStep {
            equations,
            memory: StepMemory {
                units,
                ..StepMemory::default()
            },
            columns: columns.then(Columns::default),
            cell_state,
        }
    }

    /// The hidden state after the last step.
    pub fn h(&self) -> &[T] {
        self.columns.as_ref().map_or(&self.memory.h, |rows| &rows.h)
    }

    /// The cell state after the last step, empty where there is none.
    pub fn c(&self) -> &[T] {
        self.columns.as_ref().map_or(&self.memory.c, |rows| &rows.c)
    }

    /// Sizes of the state's parts: hidden, and cell or 0.
    pub fn parts(&self) -> (usize, usize) {
        let n = self.memory.units;
        (n, if self.cell_state { n } else { 0 })
    }

    /// From `x` (copies, items, inputs), `h` and `c` (items, units) to the states after
    /// (copies, items, units): every copy starts from the same states.
    pub fn forward(&mut self, x: &[T], h: &[T], c: &[T], copies: usize) {
        T::launch(Forward {
            layer: self,
            x,
            h,
            c,
            copies,
        });
    }

    /// `dh`, `dc` of the state after become those of the state before; adds to `dx`.
    /// Unless `state` is wanted, they are left unfinished, which spares a product.
    pub fn backward(&mut self, dh: &mut [T], dc: &mut [T], dx: &mut [T], state: bool) {
        T::launch(Backward {
            layer: self,
            dh,
            dc,
            dx,
            state,
        });
    }

    /// The tangent of the new state (hidden, cell) of one item.
    pub fn tangent(&self, dx: &[T], dh: &[T], dc: &[T]) -> (Vec<T>, Vec<T>) {
        let [input, recurrent] = self.equations.maps();
        let mut p = Vec::new();
        input.of_one(Into::Set, &mut p, dx);
        recurrent.of_one(Into::Add, &mut p, dh);
        let of = InputTangent {
            dx,
            dh,
            dc,
            gates: &p,
        };
        self.equations.tangent(&self.memory, &of)
    }
}

/// A step forward, all of it with one instruction set.
struct Forward<'a, T: Real, E> {
    layer: &'a mut OneStep<T, E>,
    x: &'a [T],
    h: &'a [T],
    c: &'a [T],
    copies: usize,
}

impl<T: Real, E: StepEquations<T>> Kernel<T> for Forward<'_, T, E> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        match self.layer.columns {
            None => self.rows::<V>(),
            Some(_) => self.columns::<V>(),
        }
    }
}

impl<T: Real, E: StepEquations<T>> Forward<'_, T, E> {
    #[inline(always)]
    fn rows<V: Lanes<T = T>>(self) {
        let OneStep {
            equations, memory, ..
        } = self.layer;
        let (n, copies) = (memory.units, self.copies);
        let items = copies * self.h.len() / n;
        let same = memory.held.0 == self.h;
        if !same {
            let [_, recurrent] = equations.maps();
            recurrent.set::<V>(&mut memory.held.1, self.h, self.h.len() / n);
            repeat(&mut memory.held.0, self.h, 1);
        }
        if !same || memory.before.0.len() != items * n {
            repeat(&mut memory.before.0, self.h, copies);
        }
        repeat(&mut memory.before.1, self.c, copies);
        (memory.items, memory.row) = (items, n);
        memory.forward::<V>(equations, self.x, copies);
    }

    #[inline(always)]
    fn columns<V: Lanes<T = T>>(self) {
        let OneStep {
            equations,
            memory,
            columns,
            ..
        } = self.layer;
        let columns = columns.get_or_insert_default();
        let n = memory.units;
        let items = self.copies * self.h.len() / n;
        let lanes = if items == 1 {
            1
        } else {
            items.next_multiple_of(V::N)
        };
        if memory.held.0 != self.h || columns.items != items {
            to_columns(&mut memory.before.0, self.h, n, lanes, self.copies);
            let [_, recurrent] = equations.maps();
            recurrent.set::<V>(&mut memory.held.1, &memory.before.0, lanes);
            repeat(&mut memory.held.0, self.h, 1);
        }
        to_columns(&mut memory.before.1, self.c, n, lanes, self.copies);
        to_columns(&mut columns.x, self.x, self.x.len() / items, lanes, 1);
        (columns.items, memory.items, memory.row) = (items, lanes, n * lanes);
        // The copies of a state are there already.
        memory.forward::<V>(equations, &columns.x, 1);
        columns.h.resize(items * n, T::ZERO);
        columns.c.resize(items * memory.c.len() / lanes, T::ZERO);
        from_columns(&mut columns.h, &memory.h, lanes);
        from_columns(&mut columns.c, &memory.c, lanes);
    }
}

/// A step backward, all of it with one instruction set.
struct Backward<'a, T: Real, E> {
    layer: &'a mut OneStep<T, E>,
    dh: &'a mut [T],
    dc: &'a mut [T],
    dx: &'a mut [T],
    state: bool,
}

impl<T: Real, E: StepEquations<T>> Kernel<T> for Backward<'_, T, E> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let OneStep {
            equations,
            memory,
            columns,
            ..
        } = self.layer;
        let (dh, dc, dx) = (self.dh, self.dc, self.dx);
        let Some(columns) = columns else {
            return memory.backward::<V>(equations, dh, dc, dx, self.state);
        };
        let (n, lanes) = (memory.units, memory.items);
        let items = dh.len() / n;
        let Columns {
            dh: wide_dh,
            dc: wide_dc,
            dx: wide_dx,
            ..
        } = columns;
        to_columns(wide_dh, dh, n, lanes, 1);
        to_columns(wide_dc, dc, n, lanes, 1);
        to_columns(wide_dx, dx, dx.len() / items, lanes, 1);
        memory.backward::<V>(equations, wide_dh, wide_dc, wide_dx, self.state);
        from_columns(dh, wide_dh, lanes);
        from_columns(dc, wide_dc, lanes);
        from_columns(dx, wide_dx, lanes);
    }
}

/// Fills `to` with `from`, repeated this many times, reusing its memory.
pub(in crate::layers) fn repeat<T: Copy>(to: &mut Vec<T>, from: &[T], copies: usize) {
    to.clear();
    for _ in 0..copies {
        to.extend_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::{Init, Layout, Params};
    use crate::layers::recurrent::{ColumnMap, RecurrentCell};
    use crate::layers::{Gru, Lstm, Rnn};
    use crate::numeric::simd::{CHOSEN, available};

    fn noise<T: Real>(numbers: usize, frequency: f64) -> Vec<T> {
        let number = |i| T::of((i as f64 * frequency + 0.3).sin());
        (0..numbers).map(number).collect()
    }

    fn bits<T: Real>(parts: [&[T]; 2]) -> Vec<u64> {
        let numbers = parts.into_iter().flatten();
        numbers.map(|x| x.to_f64().to_bits()).collect()
    }

    /// Two layers with the same weights, one for rows and one for columns, step by step.
    fn agree<T: Real, C: RecurrentCell>(inputs: usize, units: usize) {
        let mut layout = Layout::default();
        let cell = C::new(&mut layout, "cell", inputs, units, Init::Uniform(0.7));
        let mut params: Params<T> = Params::init(&layout, 3);
        for (x, d) in params.trained.iter_mut().zip(noise::<T>(1 << 16, 0.37)) {
            // Biases start at zero, which hides them.
            *x += d * T::of(0.2);
        }
        let layer = |columns| OneStep::new(cell.equations(&params, columns), units, C::CELL_STATE);
        let mut layers = [layer(false), layer(true)];
        let sizes = [
            (1, 4),
            (1, 1),
            (3, 1),
            (3, 2),
            (8, 4),
            (8, 1),
            (17, 1),
            (33, 1),
        ];
        for (k, (items, copies)) in sizes.into_iter().enumerate() {
            for (again, state) in [(0, true), (1, false)] {
                let (rows, all) = (items * units, items * copies);
                let shift = (k + again) as f64 * 0.01;
                // The second time another input of the same state.
                let h = noise::<T>(rows, 0.7 + k as f64 * 0.01);
                let c = noise::<T>(if C::CELL_STATE { rows } else { 0 }, 0.9);
                let x = noise::<T>(all * inputs, 1.3 + shift);
                let [rows, columns] = layers.each_mut().map(|layer| {
                    layer.forward(&x, &h, &c, copies);
                    let after = bits([layer.h(), layer.c()]);
                    let mut dh = noise::<T>(all * units, 2.1 + shift);
                    let mut dc = noise::<T>(copies * c.len(), 2.3 + shift);
                    let mut dx = noise::<T>(all * inputs, 0.2);
                    let (th, tc) = (dh.clone(), dc.clone());
                    layer.backward(&mut dh, &mut dc, &mut dx, state);
                    let before = bits(if state { [&dh, &dc] } else { [&[], &[]] });
                    let one = (all == 1).then(|| layer.tangent(&x, &th, &tc));
                    let one = one.map(|(h, c)| bits([&h, &c]));
                    (after, before, bits([&dx, &[]]), one)
                });
                assert_eq!(rows, columns, "{cell:?} {items} items, {copies} copies");
            }
        }
    }

    #[test]
    fn columns_have_the_bits_of_rows() {
        for isa in available() {
            CHOSEN.set(Some(isa));
            for units in [1, 2, 3, 4, 7, 8, 9, 17] {
                for inputs in [1, 2, 9, 28, ColumnMap::<f32>::TERMS] {
                    agree::<f32, Rnn>(inputs, units);
                    agree::<f32, Gru>(inputs, units);
                    agree::<f32, Lstm>(inputs, units);
                }
                agree::<f64, Rnn>(3, units);
                agree::<f64, Gru>(3, units);
                agree::<f64, Lstm>(3, units);
            }
            CHOSEN.set(None);
        }
    }
}
