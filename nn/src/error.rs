//! What can be wrong with arrays, and where a fit stopped.

/// Every error names what was expected and what came.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// An array has the wrong size.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The array.
        what: &'static str,
        /// What the model takes.
        expected: String,
        /// What came.
        got: String,
    },
    /// A batch with no items, or an item with no steps.
    #[error("{what} is empty: give at least one")]
    Empty {
        /// The array.
        what: &'static str,
    },
    /// A token or class outside its range.
    #[error("{what} {got} at item {item}: expected below {below}")]
    Range {
        /// Token, label or position.
        what: &'static str,
        /// The index of the item in its batch.
        item: usize,
        /// The value.
        got: usize,
        /// The first value that is too large.
        below: usize,
    },
    /// NaN or infinity in an input.
    #[error("{what} holds {got} at index {index}: expected a finite number")]
    NotFinite {
        /// The array.
        what: &'static str,
        /// Where.
        index: usize,
        /// The number.
        got: f64,
    },
    /// Training met NaN or infinity; the weights are those of the last good step.
    #[error(
        "training stopped at step {step}: the {what} is not finite; the last good loss was {last_good}. Lower the learning rate or clip the gradient"
    )]
    Diverged {
        /// The step that failed, counted from 0.
        step: u64,
        /// Loss or gradient.
        what: &'static str,
        /// The loss of the step before, NaN when there was none.
        last_good: f64,
    },
    /// A setting outside its range.
    #[error("{what} is {got}: expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        got: String,
    },
    /// This model has no such thing to show or differentiate.
    #[error("this model has no {what}")]
    Missing {
        /// Attention, states, tokens, ...
        what: &'static str,
    },
    /// A model that lives in another process did not answer as it should.
    #[error("{why}")]
    Outside {
        /// What happened, for people.
        why: String,
    },
    /// A checkpoint of another fit.
    #[error(
        "checkpoint of another fit: {what}: expected {expected}, got {got}. Resume the fit it was made by, or start without it"
    )]
    Foreign {
        /// The part of the model, settings or data that differs.
        what: String,
        /// What this fit has.
        expected: String,
        /// What the checkpoint was made with.
        got: String,
    },
    /// Examples that a fit is supplied with could not be generated.
    #[error("{why}")]
    ExtraExamples {
        /// The caller's message.
        why: String,
    },
    /// Bytes that are not what they should be.
    #[error("{what}: {why}")]
    Format {
        /// Checkpoint or safetensors.
        what: &'static str,
        /// What is wrong with them.
        why: String,
    },
}

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error unless `got` is `expected`.
#[inline]
pub(crate) fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        Ok(())
    } else {
        differ(what, expected, got)
    }
}

#[cold]
fn differ(what: &'static str, expected: usize, got: usize) -> Result<()> {
    Err(Error::Shape {
        what,
        expected: expected.to_string(),
        got: got.to_string(),
    })
}

/// An error unless `ok`.
pub(crate) fn setting(
    what: &'static str,
    ok: bool,
    expected: &str,
    got: impl std::fmt::Display,
) -> Result<()> {
    if ok {
        Ok(())
    } else {
        Err(Error::Setting {
            what,
            expected: expected.into(),
            got: got.to_string(),
        })
    }
}
