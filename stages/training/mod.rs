//! Training, by task: [`classify`] (a class per row), [`language`] (the next token of a long text), [`translate`]
//! (a target text from a source text), and [`adversarial`], a classifier that also learns from rows made against its
//! current weights.
//!
//! Shared by them: [`PARAMS`] and the settings of a fit made of them, what would have no effect, training a
//! network epoch by epoch, and the table `model`. Knows nothing of attacks.

pub mod adversarial;
pub mod checkpoint;
pub mod classify;
mod data;
mod effect;
mod epochs;
pub mod language;
mod network;
mod params;
mod resumable;
mod schedule;
mod spec;
#[cfg(test)]
mod tests;
mod trained;
pub mod translate;

pub use data::TrainingData;
pub use effect::{expect_splits, idle, idle_all, needs_dev};
pub use params::PARAMS;
pub use resumable::Pause;
pub use spec::fit_spec;
pub use trained::{Trained, described};

use crate::contract::expected::Expected;
use crate::tables::{history, model};

/// What is known of the tables `history` and `model`.
pub fn expected() -> [Expected; 2] {
    [history::SCHEMA.expected(), model::SCHEMA.expected()]
}
