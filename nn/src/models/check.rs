//! What must be right about a batch before a model reads it.

use super::network::TargetKind;
use crate::batch::{Batch, Input, Targets};
use crate::error::{Error, Result, same};
use crate::numeric::Real;

/// Sizes that must agree in any batch.
pub(super) fn sizes<T: Real>(batch: &Batch<T>) -> Result<()> {
    let (time, items) = (batch.time(), batch.items());
    if items == 0 {
        return Err(Error::Empty { what: "batch" });
    }
    if batch.lens.contains(&0) {
        return Err(Error::Empty { what: "sequence" });
    }
    let (width, got) = match &batch.input {
        Input::Tokens(ids) => (1, ids.len()),
        Input::Vectors(rows) => (rows.dim().2, rows.len()),
        Input::Chars(ids, width) => (*width, ids.len()),
    };
    same("input", time * items * width, got)?;
    match &batch.targets {
        Targets::None => Ok(()),
        Targets::Classes(classes) => same("targets", items, classes.len()),
        Targets::Tokens(ids, lens) => {
            same("target lengths", items, lens.len())?;
            same(
                "targets",
                lens.iter().max().unwrap_or(&0) * items,
                ids.len(),
            )
        }
    }
}

/// An error when there are more steps than positions.
pub(super) fn steps(positions: usize, steps: usize) -> Result<()> {
    if steps <= positions {
        return Ok(());
    }
    Err(Error::Shape {
        what: "steps",
        expected: format!("at most {positions}"),
        got: steps.to_string(),
    })
}

/// Classifiers take classes, sequence models tokens, a language model one for each of its steps.
pub(super) fn targets<T: Real>(kind: TargetKind, batch: &Batch<T>) -> Result<()> {
    let wrong = |expected: &str, got: &str| {
        Err(Error::Shape {
            what: "target",
            expected: expected.into(),
            got: got.into(),
        })
    };
    match (&batch.targets, kind) {
        (Targets::Tokens(..), TargetKind::Class) => wrong("a class", "tokens"),
        (Targets::Classes(_), TargetKind::Tokens | TargetKind::NextTokens) => {
            wrong("tokens", "a class")
        }
        (Targets::Tokens(_, lens), TargetKind::NextTokens) => {
            let pairs = batch.lens.iter().zip(lens.iter());
            let mut pairs = pairs.map(|(steps, targets)| (*steps, *targets));
            pairs.try_for_each(|(steps, targets)| same("tokens in a target", steps, targets))
        }
        _ => Ok(()),
    }
}
