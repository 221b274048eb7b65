//! Checks of parameters that several models have.

use crate::error::{Result, setting};

/// Every size is above 0.
pub(super) fn sizes(sizes: &[(&'static str, usize)]) -> Result<()> {
    sizes
        .iter()
        .try_for_each(|(what, size)| setting(what, *size > 0, "above 0", size))
}

/// There is more than one class.
pub(super) fn classes(classes: usize) -> Result<()> {
    setting("classes", classes > 1, "above 1", classes)
}

/// A probability below 1.
pub(super) fn dropout(rate: f64) -> Result<()> {
    setting("dropout", (0.0..1.0).contains(&rate), "in [0, 1)", rate)
}

/// The heads share a row equally.
pub(super) fn heads(heads: usize, dim: usize) -> Result<()> {
    let divides = heads > 0 && dim.is_multiple_of(heads);
    setting("heads", divides, "a divisor of dim", heads)
}
