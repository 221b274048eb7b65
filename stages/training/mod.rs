//! Training, by task: [`classify`] one text or a pair, [`language`] (the next token of a long text),
//! [`translate`] (a source into a target), and [`adversarial`], a classifier that also learns from rows made
//! against its current weights.
//!
//! Shared by them: [`PARAMS`] and the settings of a fit made of them, what would have no effect, training a
//! network epoch by epoch, and the tables of a training. Knows nothing of attacks.

pub mod adversarial;
pub mod classify;
mod data;
mod effect;
mod epochs;
mod history;
pub mod language;
mod network;
mod params;
mod schedule;
mod spec;
#[cfg(test)]
mod tests;
mod trained;
pub mod translate;

pub use data::TrainingData;
pub use effect::{expect_splits, idle, idle_all, needs_dev};
pub use history::{HISTORY, history};
pub use params::PARAMS;
pub use spec::fit_spec;
pub use trained::{MODEL, Trained, model};

use crate::contract::expected::Expected;

/// What is known of the tables `history` and `model`.
pub fn expected() -> [Expected; 2] {
    [HISTORY, MODEL].map(Expected::of_columns)
}
