//! The gradient of the weights from one shard of a batch, and the sum over shards.
//!
//! Small weights have a dense buffer a shard. The gradient of a large linear map, `x^T dy`, is
//! remembered as its two factors, which are on the tape anyway, and computed once for all
//! shards; the gradient of a table of vectors is remembered as the rows that were used.

use crate::gemm::{Into, Mat, gemm_strided};
use crate::params::{Layout, Span};
use crate::tape::{Tape, Var};
use crate::{Error, Real, Result};
use rayon::prelude::*;

/// Columns of a large gradient that one task computes.
const COLUMNS: usize = 512;
/// Numbers of the flat gradient that one task adds.
const PIECE: usize = 1 << 14;

/// Some rows of a value on the tape.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The value.
    pub var: Var,
    /// Rows to skip.
    pub skip: usize,
    /// Rows to use.
    pub rows: usize,
}

impl Rows {
    /// All rows.
    pub fn all<T: Real>(tape: &Tape<T>, var: Var) -> Self {
        Rows {
            var,
            skip: 0,
            rows: tape.shape(var).rows(),
        }
    }

    fn mat<'a, T: Real>(&self, tape: &'a Tape<T>) -> Mat<'a, T> {
        let dim = tape.shape(self.var).dim;
        Mat::new(&tape.get(self.var)[self.skip * dim..], self.rows, dim)
    }
}

/// The gradient of the weights from one shard.
#[derive(Clone, Debug, Default)]
pub struct Grads<T> {
    flat: Vec<T>,
    products: Vec<(Span, Rows, Rows)>,
    tables: Vec<(Span, Vec<u32>, Var)>,
    wanted: bool,
}

impl<T: Real> Grads<T> {
    /// All zero, for weights of this layout.
    pub fn reset(&mut self, layout: &Layout) {
        self.forget();
        self.wanted = true;
        self.flat.resize(layout.in_shard(), T::ZERO);
    }

    /// No gradient of weights is wanted.
    pub fn forget(&mut self) {
        self.wanted = false;
        self.products.clear();
        self.tables.clear();
        self.flat.clear();
    }

    /// Whether anybody wants the gradient of this weight.
    pub fn wants(&self, span: Span) -> bool {
        self.wanted && !span.frozen()
    }

    /// The gradient of one weight, to add to.
    pub fn get(&mut self, span: Span) -> &mut [T] {
        &mut self.flat[span
            .in_shard()
            .expect("a weight with a gradient of its own in a shard")]
    }

    /// Adds `x^T dy`, the gradient of a linear map. Both stay on the tape until it is reset.
    pub fn product(&mut self, tape: &Tape<T>, span: Span, x: Rows, dy: Rows) {
        if !self.wants(span) || x.rows == 0 {
            return;
        }
        if span.in_shard().is_none() {
            self.products.push((span, x, dy));
        } else {
            gemm_strided(
                Into::Add,
                self.get(span),
                span.cols,
                x.mat(tape).t(),
                dy.mat(tape),
            );
        }
    }

    /// Adds rows of `dy` to the rows `ids` of a table. `dy` stays on the tape until it is reset.
    pub fn table(&mut self, span: Span, ids: &[u32], dy: Var) {
        if self.wants(span) {
            self.tables.push((span, ids.to_vec(), dy));
        }
    }

    /// Adds the sum of the columns of `dy`: the gradient of a bias.
    pub fn bias(&mut self, span: Span, dy: &[T]) {
        if self.wants(span) {
            let to = self.get(span);
            for row in dy.chunks_exact(to.len()) {
                for (t, d) in to.iter_mut().zip(row) {
                    *t += *d;
                }
            }
        }
    }
}

/// A shard's tape and gradient.
#[derive(Default)]
pub struct Shard<T: Real> {
    /// The record of its forward pass.
    pub tape: Tape<T>,
    /// The gradient of the weights.
    pub grads: Grads<T>,
}

/// Rows of tables that hold a gradient; all other rows are zero.
pub(crate) type Touched = Vec<(Span, Vec<u32>)>;

/// Adds the shards' gradients, in their order, into `total`: the same bits on any number of threads.
pub fn reduce<T: Real>(shards: &[Shard<T>], layout: &Layout, total: &mut Vec<T>) -> Result<()> {
    total.clear();
    reduce_again(shards, layout, total, &mut Touched::new())
}

/// As [`reduce`], into what the last call left: only rows that it touched are cleared, since a batch holds few of
/// a table's rows.
pub(crate) fn reduce_again<T: Real>(
    shards: &[Shard<T>],
    layout: &Layout,
    total: &mut Vec<T>,
    touched: &mut Touched,
) -> Result<()> {
    if shards.is_empty() {
        return Err(Error::Empty {
            what: "list of shards",
        });
    }
    total.resize(layout.trained(), T::ZERO);
    for (span, rows) in touched.drain(..) {
        for row in rows {
            let at = span.range().start + row as usize * span.cols;
            total[at..at + span.cols].fill(T::ZERO);
        }
    }
    let mut clear: Vec<Span> = layout.large().to_vec();
    for i in 0..shards[0].grads.products.len() {
        let span = shards[0].grads.products[i].0;
        let first = clear.iter().position(|s| *s == span);
        first.map(|k| clear.swap_remove(k));
        add_product(shards, i, total, first.is_some());
    }
    for span in clear {
        total[span.range()].fill(T::ZERO);
    }
    for (_, span) in layout.entries().filter(|(_, span)| !span.frozen()) {
        let Some(from) = span.in_shard() else {
            continue;
        };
        total[span.range()]
            .par_chunks_mut(PIECE)
            .enumerate()
            .for_each(|(i, piece)| {
                let here = from.start + i * PIECE..from.start + i * PIECE + piece.len();
                piece.copy_from_slice(&shards[0].grads.flat[here.clone()]);
                for shard in &shards[1..] {
                    for (t, g) in piece.iter_mut().zip(&shard.grads.flat[here.clone()]) {
                        *t += *g;
                    }
                }
            });
    }
    for shard in shards {
        for (span, ids, dy) in &shard.grads.tables {
            let to = &mut total[span.range()];
            for (id, dy) in ids.iter().zip(shard.tape.get(*dy).chunks_exact(span.cols)) {
                let at = *id as usize * span.cols;
                for (t, d) in to[at..at + span.cols].iter_mut().zip(dy) {
                    *t += *d;
                }
            }
            touched.push((*span, ids.clone()));
        }
    }
    Ok(())
}

/// Product `i` of every shard, in parallel over blocks of columns; the first of a weight replaces what was there.
fn add_product<T: Real>(shards: &[Shard<T>], i: usize, total: &mut [T], first: bool) {
    let span = shards[0].grads.products[i].0;
    // A task owns some columns of every row; they interleave, so the slices are collected first.
    let mut tasks: Vec<Vec<&mut [T]>> = (0..span.cols.div_ceil(COLUMNS))
        .map(|_| Vec::with_capacity(span.rows))
        .collect();
    for row in total[span.range()].chunks_mut(span.cols) {
        for (task, part) in tasks.iter_mut().zip(row.chunks_mut(COLUMNS)) {
            task.push(part);
        }
    }
    tasks
        .par_iter_mut()
        .enumerate()
        .for_each_init(Vec::new, |sum, (task, rows)| {
            let width = rows[0].len();
            sum.resize(span.rows * width, T::ZERO);
            let mut into = Into::Set;
            for shard in shards {
                let (_, x, dy) = shard.grads.products[i];
                let values = &shard.tape.get(dy.var)[dy.skip * span.cols + task * COLUMNS..];
                gemm_strided(
                    std::mem::replace(&mut into, Into::Add),
                    sum,
                    width,
                    x.mat(&shard.tape).t(),
                    Mat::strided(values, dy.rows, width, span.cols),
                );
            }
            for (to, from) in rows.iter_mut().zip(sum.chunks_exact(width)) {
                if first {
                    to.copy_from_slice(from);
                    continue;
                }
                for (t, f) in to.iter_mut().zip(from) {
                    *t += *f;
                }
            }
        });
}
