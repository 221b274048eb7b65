//! A part of a batch with its own tape and gradient, and the sum over shards.

use super::grads::Grads;
use super::layout::{Layout, Span};
use super::tape::Tape;
use crate::error::{Error, Result};
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm_strided};
use rayon::prelude::*;

/// Columns of a large gradient that one task computes.
const COLUMNS: usize = 512;
/// Numbers of the flat gradient that one task adds.
const PIECE: usize = 1 << 14;

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
