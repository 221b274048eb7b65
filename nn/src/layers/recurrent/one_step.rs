//! One step of a recurrent layer, forward and both ways of differentiating.
//!
//! `forward` keeps what the derivatives need. `backward` turns the gradient of the new state into those of the old
//! state and of the input; `tangent` turns tangents `dx`, `dh`, `dc` of input and state into that of the new state.
//! Narrow layers have their own implementation (`narrow`), which gives bit-identical results.

use super::cell::RecurrentCell;
use super::narrow::{NarrowStep, narrow};
use super::row_step::RowStep;
use crate::autodiff::Params;
use crate::numeric::Real;

/// A layer with its weights packed once for all steps, and what its last step left.
pub struct OneStep<T: Real, C: RecurrentCell> {
    rows: RowStep<T, C::Equations<T>>,
    narrow: Option<NarrowStep<T, C::Narrow<T>>>,
    units: usize,
}

impl<T: Real, C: RecurrentCell> OneStep<T, C> {
    /// A layer with these weights.
    pub fn new(cell: &C, params: &Params<T>) -> Self {
        OneStep::of(cell, params, narrow(cell.inputs(), cell.units()))
    }

    fn of(cell: &C, params: &Params<T>, narrow: bool) -> Self {
        let units = cell.units();
        OneStep {
            rows: RowStep::new(cell.equations(params), units),
            narrow: narrow.then(|| NarrowStep::new(cell.narrow(params), units)),
            units,
        }
    }

    /// The hidden state after the last step.
    pub fn h(&self) -> &[T] {
        self.narrow.as_ref().map_or(self.rows.h(), |step| &step.h)
    }

    /// The cell state after the last step, empty where there is none.
    pub fn c(&self) -> &[T] {
        self.narrow.as_ref().map_or(self.rows.c(), |step| &step.c)
    }

    /// Sizes of the state's parts: hidden, and cell or 0.
    pub fn parts(&self) -> (usize, usize) {
        (self.units, if C::CELL_STATE { self.units } else { 0 })
    }

    /// From `x` (copies, items, inputs), `h` and `c` (items, units) to the states after
    /// (copies, items, units): every copy starts from the same states.
    pub fn forward(&mut self, x: &[T], h: &[T], c: &[T], copies: usize) {
        match &mut self.narrow {
            Some(step) => step.forward(x, h, c, copies),
            None => self.rows.forward(x, h, c, copies),
        }
    }

    /// `dh`, `dc` of the state after become those of the state before, and `dx` that of the input.
    /// Unless `state` is wanted, they are left unfinished, which spares a product.
    pub fn backward(&mut self, dh: &mut [T], dc: &mut [T], dx: &mut Vec<T>, state: bool) {
        match &mut self.narrow {
            Some(step) => step.backward(dh, dc, dx, state),
            None => self.rows.backward(dh, dc, dx, state),
        }
    }

    /// The tangent of the new state (hidden, cell) of one item.
    pub fn tangent(&mut self, dx: &[T], dh: &[T], dc: &[T]) -> (Vec<T>, Vec<T>) {
        if let Some(step) = &self.narrow {
            // Seldom asked for, so only rows have it.
            let [x, h, c] = step.read();
            self.rows.forward(x, h, c, 1);
        }
        self.rows.tangent(dx, dh, dc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::{Init, Layout, Params};
    use crate::layers::recurrent::narrow::TERMS;
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

    /// Two layers with the same weights, one for rows and one as a narrow one, step by step.
    fn agree<T: Real, C: RecurrentCell>(inputs: usize, units: usize) {
        let mut layout = Layout::default();
        let cell = C::new(&mut layout, "cell", inputs, units, Init::Uniform(0.7));
        let mut params: Params<T> = Params::init(&layout, 3);
        for (x, d) in params.trained.iter_mut().zip(noise::<T>(1 << 16, 0.37)) {
            // Biases start at zero, which hides them.
            *x += d * T::of(0.2);
        }
        let layer = |narrow| OneStep::of(&cell, &params, narrow);
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
                let [rows, narrow] = layers.each_mut().map(|layer| {
                    layer.forward(&x, &h, &c, copies);
                    let after = bits([layer.h(), layer.c()]);
                    let mut dh = noise::<T>(all * units, 2.1 + shift);
                    let mut dc = noise::<T>(copies * c.len(), 2.3 + shift);
                    let mut dx = Vec::new();
                    let (th, tc) = (dh.clone(), dc.clone());
                    layer.backward(&mut dh, &mut dc, &mut dx, state);
                    let before = bits(if state { [&dh, &dc] } else { [&[], &[]] });
                    let one = (all == 1).then(|| layer.tangent(&x, &th, &tc));
                    let one = one.map(|(h, c)| bits([&h, &c]));
                    (after, before, bits([&dx, &[]]), one)
                });
                assert_eq!(rows, narrow, "{cell:?} {items} items, {copies} copies");
            }
        }
    }

    #[test]
    fn narrow_steps_have_the_bits_of_rows() {
        for isa in available() {
            CHOSEN.set(Some(isa));
            for units in 1..=8 {
                for inputs in [1, 2, 9, 28, TERMS] {
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
