//! Embedding: `y[t, b] = E[id[t, b]]`.
//!
//! `E` is (vocabulary, dim), trained or frozen; ids and `y` are (time, batch[, dim]).
//! Backward adds row `dy[t, b]` to row `id[t, b]` of the table's gradient. The output is
//! where attacks read the gradient of the input, so it wants one whenever inputs do.

use crate::autodiff::{Grads, Init, Layout, Op, Params, Shape, Span, Tape, Var};
use crate::batch::Side;
use crate::numeric::Real;

/// A table of vectors.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// (vocabulary, dim)
    pub table: Span,
}

impl Embedding {
    /// A trained table.
    pub fn new(layout: &mut Layout, name: &str, vocabulary: usize, dim: usize, init: Init) -> Self {
        Embedding {
            table: layout.add_table(name, vocabulary, dim, init),
        }
    }

    /// A frozen table, zero until it is set.
    pub fn frozen(layout: &mut Layout, name: &str, vocabulary: usize, dim: usize) -> Self {
        Embedding {
            table: layout.add_frozen(name, vocabulary, dim),
        }
    }

    /// The vectors of `ids`, which are (time, batch) and were checked with the batch. Those of the source are the
    /// model's input; of what a decoder reads no input gradient is kept.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        ids: &[u32],
        time: usize,
        batch: usize,
        side: Side,
    ) -> Var {
        let input = tape.want().input && side == Side::Source;
        let dim = self.table.cols;
        let trained = tape.want().weights && !self.table.frozen();
        let y = tape.value(Shape::new(time, batch, dim), trained || input);
        let mut out = tape.take(y);
        let table = params.get(self.table);
        for (to, id) in out.chunks_exact_mut(dim).zip(ids) {
            to.copy_from_slice(&table[*id as usize * dim..][..dim]);
        }
        tape.put(y, out);
        if trained {
            tape.record(
                y,
                Backward {
                    table: self.table,
                    ids: ids.to_vec(),
                    y,
                },
            );
        }
        y
    }
}

struct Backward {
    table: Span,
    ids: Vec<u32>,
    y: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, _: &Params<T>, grads: &mut Grads<T>) {
        if tape.grad(self.y).is_empty() {
            return;
        }
        let shape = tape.shape(self.y);
        // From the tape's own memory, to which it returns: a copy of a new vector would be kept at every step.
        let mut copy = tape.dirty(shape.len());
        copy.copy_from_slice(tape.grad(self.y));
        let dy = tape.keep(shape, copy);
        grads.table(self.table, &self.ids, dy);
    }
}
