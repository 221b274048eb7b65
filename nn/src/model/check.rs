//! What must be right about a batch before a model reads it.

use super::Spec;
use crate::batch::{Batch, Input, Targets};
use crate::error::same;
use crate::{Error, Real, Result};

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
        Input::Vectors(data, dim) => (*dim, data.len()),
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

/// Classifiers take classes, sequence models tokens, a language model one for each of its steps.
pub(super) fn targets<T: Real>(spec: &Spec, batch: &Batch<T>) -> Result<()> {
    let classifier = matches!(
        spec,
        Spec::Recurrent(_) | Spec::KimCnn(_) | Spec::CharCnn(_) | Spec::Transformer(_)
    );
    let wrong = |expected: &str, got: &str| {
        Err(Error::Shape {
            what: "target",
            expected: expected.into(),
            got: got.into(),
        })
    };
    match (&batch.targets, classifier) {
        (Targets::Tokens(..), true) => wrong("a class", "tokens"),
        (Targets::Classes(_), false) => wrong("tokens", "a class"),
        (Targets::Tokens(_, lens), false) if matches!(spec, Spec::Language(_)) => batch
            .lens
            .iter()
            .zip(lens.iter())
            .try_for_each(|(steps, targets)| same("tokens in a target", *steps, *targets)),
        _ => Ok(()),
    }
}
