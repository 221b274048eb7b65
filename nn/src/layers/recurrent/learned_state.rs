//! Initial states that are learned: `h[-1] = h0` and `c[-1] = c0`, the same rows for every item of a batch.
//!
//! Backward: `dh0` is the sum over items of the gradient of the state before the first step.

use crate::autodiff::{Init, Layout, Params, Shape, Span, Tape, Var};
use crate::numeric::Real;

/// Initial states that are learned: the same row for every item.
#[derive(Clone, Copy, Debug)]
pub struct LearnedState {
    h: Span,
    c: Option<Span>,
}

impl LearnedState {
    /// Starts at zero.
    pub fn new(layout: &mut Layout, name: &str, units: usize, cell: bool) -> Self {
        let h = layout.add(&format!("{name}.h0"), 1, units, Init::Constant(0.0));
        LearnedState {
            h,
            c: cell.then(|| layout.add(&format!("{name}.c0"), 1, units, Init::Constant(0.0))),
        }
    }

    /// The learned numbers, hidden then cell.
    pub fn values<T: Real>(&self, params: &Params<T>) -> Vec<T> {
        [Some(self.h), self.c]
            .iter()
            .flatten()
            .flat_map(|s| params.get(*s))
            .copied()
            .collect()
    }

    /// The states for `batch` items.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: usize,
    ) -> (Var, Option<Var>) {
        (
            repeat(tape, params, self.h, batch),
            self.c.map(|c| repeat(tape, params, c, batch)),
        )
    }
}

fn repeat<T: Real>(tape: &mut Tape<T>, params: &Params<T>, span: Span, batch: usize) -> Var {
    let y = tape.output(Shape::new(1, batch, span.cols), &[], true);
    let mut out = tape.take(y);
    out.chunks_exact_mut(span.cols)
        .for_each(|row| row.copy_from_slice(params.get(span)));
    tape.put(y, out);
    tape.record_output(y, move |_, _, grads, dy| grads.bias(span, dy));
    y
}
