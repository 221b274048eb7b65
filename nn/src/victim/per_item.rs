//! What one item of a batch left on the tape: its own steps, without padding.

use super::interface::{LayerAttention, LayerStates, LayerVectors};
use crate::autodiff::{Tape, Var};
use crate::batch::{Batch, Input, Targets};
use crate::error::{Error, Result, same};
use crate::layers::States;
use crate::models::{Attention, AttentionKind, Hidden, Output};
use crate::numeric::softmax;
use ndarray::{Array1, Array2, Array3};
use std::ops::Range;

/// Rows of `dim` numbers as an array.
pub(super) fn array(data: Vec<f32>, dim: usize) -> Array2<f32> {
    let rows = data.len() / dim.max(1);
    Array2::from_shape_vec((rows, dim), data).expect("whole rows")
}

/// Some columns of item `b` at its first `len` steps.
pub(super) fn rows_of(
    tape: &Tape<f32>,
    v: Var,
    b: usize,
    len: usize,
    columns: Range<usize>,
) -> Array2<f32> {
    let (shape, data) = (tape.shape(v), tape.get(v));
    let row = |t: usize| &data[(t * shape.batch + b) * shape.dim..][columns.clone()];
    let data = (0..len.min(shape.time)).flat_map(row).copied().collect();
    array(data, columns.len())
}

/// Logits of every step that belongs to item `b`.
pub(super) fn logits_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Array2<f32> {
    let shape = tape.shape(out.logits);
    let len = batch.answered(shape.time, b);
    rows_of(tape, out.logits, b, len, 0..shape.dim)
}

/// Cross-entropy of every step of item `b` against its target.
pub(super) fn losses_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Result<Array1<f64>> {
    let mut logits = logits_of(tape, out, batch, b);
    let target = |t: usize| match &batch.targets {
        Targets::None => Err(Error::Missing { what: "target" }),
        Targets::Classes(classes) => Ok(classes[b] as usize),
        Targets::Tokens(ids, _) => Ok(ids[t * batch.items() + b] as usize),
    };
    let mut losses = Array1::zeros(logits.nrows());
    for (t, mut z) in logits.rows_mut().into_iter().enumerate() {
        let y = target(t)?;
        let chosen = *z.get(y).ok_or(Error::Range {
            what: "target",
            item: b,
            got: y,
            below: z.len(),
        })?;
        let row = z.as_slice_mut().expect("rows are contiguous");
        losses[t] = f64::from(softmax(row) - chosen);
    }
    Ok(losses)
}

/// What item `b` has at the vectors that were read: `values` are those vectors, or their gradient.
pub(super) fn input_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    values: &[f32],
    b: usize,
) -> Array2<f32> {
    // Character models read `width` vectors per word, one after the other.
    let width = match batch.input {
        Input::Chars(_, width) => width,
        _ => 1,
    };
    let (dim, items) = (tape.shape(out.input).dim, batch.items());
    let step = width * dim;
    let mut data = vec![0.0; batch.lens[b] * step];
    if !values.is_empty() {
        for (t, to) in data.chunks_exact_mut(step).enumerate() {
            to.copy_from_slice(&values[(t * items + b) * step..][..step]);
        }
    }
    array(data, dim)
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
        let gates = s.gates.iter().map(|g| (g.name, rows(g.var, g.from)));
        LayerStates {
            side: s.side,
            direction: s.direction,
            h: rows(s.h, 0),
            c: s.c.map(|c| rows(c, 0)),
            gates: gates.collect(),
        }
    };
    Ok(out.states.iter().map(layer).collect())
}

/// States without gates: what the steps after depend on.
pub(super) fn carried_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Vec<LayerStates> {
    let layer = |s: &States| {
        let len = batch.len_of(s.side, b);
        let rows = |v: Var| rows_of(tape, v, b, len, 0..tape.shape(v).dim);
        LayerStates {
            side: s.side,
            direction: s.direction,
            h: rows(s.h),
            c: s.c.map(rows),
            gates: Vec::new(),
        }
    };
    out.states.iter().map(layer).collect()
}

/// The vectors after each layer.
pub(super) fn hidden_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Result<Vec<LayerVectors>> {
    if out.hidden.is_empty() {
        return Err(Error::Missing {
            what: "vectors at every position",
        });
    }
    let layer = |v: &Hidden| {
        let (len, dim) = (batch.len_of(v.side, b), tape.shape(v.rows).dim);
        LayerVectors {
            side: v.side,
            vectors: rows_of(tape, v.rows, b, len, 0..dim),
        }
    };
    Ok(out.hidden.iter().map(layer).collect())
}

/// Attention weights of every layer.
pub(super) fn attention_of(
    tape: &Tape<f32>,
    out: &Output,
    batch: &Batch<f32>,
    b: usize,
) -> Result<Vec<LayerAttention>> {
    if out.attention.is_empty() {
        return Err(Error::Missing { what: "attention" });
    }
    let layer = |a: &Attention| {
        let (shape, keys) = (tape.shape(a.weights), batch.len_of(a.keys, b));
        let (data, heads) = match a.kind {
            AttentionKind::Pool => (
                rows_of(tape, a.weights, b, keys, 0..1)
                    .into_raw_vec_and_offset()
                    .0,
                1,
            ),
            AttentionKind::Heads(heads) => {
                let (all, own) = (shape.time / heads, batch.len_of(a.queries, b));
                let row = |h: usize, q: usize| {
                    &tape.get(a.weights)[((h * all + q) * shape.batch + b) * shape.dim..][..keys]
                };
                let rows = (0..heads).flat_map(|h| (0..own).flat_map(move |q| row(h, q)));
                (rows.copied().collect::<Vec<f32>>(), heads)
            }
        };
        let queries = data.len() / (heads * keys);
        same("attention weights", heads * queries * keys, data.len())?;
        let weights = Array3::from_shape_vec((heads, queries, keys), data);
        Ok(LayerAttention {
            queries: a.queries,
            keys: a.keys,
            weights: weights.expect("the size was compared"),
        })
    };
    out.attention.iter().map(layer).collect()
}
