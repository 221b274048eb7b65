//! What one item of a batch left on the tape: its own steps, without padding.

use super::interface::{LayerStates, Matrix};
use crate::autodiff::{Tape, Var};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::layers::States;
use crate::models::{Attention, AttentionKind, Output};
use std::ops::Range;

/// Some columns of item `b` at its first `len` steps.
pub(super) fn rows_of(
    tape: &Tape<f32>,
    v: Var,
    b: usize,
    len: usize,
    columns: Range<usize>,
) -> Matrix {
    let (shape, data) = (tape.shape(v), tape.get(v));
    let row = |t: usize| &data[(t * shape.batch + b) * shape.dim..][columns.clone()];
    Matrix {
        dim: columns.len(),
        data: (0..len.min(shape.time)).flat_map(row).copied().collect(),
    }
}

/// Logits of every step that belongs to item `b`.
pub(super) fn logits_of(tape: &Tape<f32>, out: &Output, batch: &Batch<f32>, b: usize) -> Vec<f32> {
    let shape = tape.shape(out.logits);
    let len = batch.answered(shape.time, b);
    rows_of(tape, out.logits, b, len, 0..shape.dim).data
}

/// States and gates of every recurrent layer.
pub(super) fn states_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Result<Vec<LayerStates>> {
    if out.states.is_empty() {
        return Err(Error::Missing {
            what: "recurrent states",
        });
    }
    let layer = |s: &States| {
        let (units, len) = (tape.shape(s.h).dim, batch.len_of(s.side, b));
        let rows = |v: Var, from: usize| rows_of(tape, v, b, len, from..from + units);
        LayerStates {
            h: rows(s.h, 0),
            c: s.c.map(|c| rows(c, 0)),
            gates: s
                .gates
                .iter()
                .map(|g| (g.name, rows(g.var, g.from)))
                .collect(),
        }
    };
    Ok(out.states.iter().map(layer).collect())
}

/// States without gates: what the steps after depend on.
pub(crate) fn carried_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Vec<LayerStates> {
    let layer = |s: &States| {
        let len = batch.len_of(s.side, b);
        let rows = |v: Var| rows_of(tape, v, b, len, 0..tape.shape(v).dim);
        LayerStates {
            h: rows(s.h),
            c: s.c.map(rows),
            gates: Vec::new(),
        }
    };
    out.states.iter().map(layer).collect()
}

/// Attention weights of every layer.
pub(super) fn attention_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Result<Vec<Matrix>> {
    if out.attention.is_empty() {
        return Err(Error::Missing { what: "attention" });
    }
    let layer = |a: &Attention| {
        let (shape, keys) = (tape.shape(a.weights), batch.len_of(a.keys, b));
        let data = match a.kind {
            AttentionKind::Pool => rows_of(tape, a.weights, b, keys, 0..1).data,
            AttentionKind::Heads(heads) => {
                let (all, own) = (shape.time / heads, batch.len_of(a.queries, b));
                let row = |h: usize, q: usize| {
                    &tape.get(a.weights)[((h * all + q) * shape.batch + b) * shape.dim..][..keys]
                };
                (0..heads)
                    .flat_map(|h| (0..own).flat_map(move |q| row(h, q)))
                    .copied()
                    .collect()
            }
        };
        Matrix { dim: keys, data }
    };
    Ok(out.attention.iter().map(layer).collect())
}
