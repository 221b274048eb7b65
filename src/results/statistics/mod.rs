//! How sure a number is: intervals, paired differences and tests, on plain slices. Everything is deterministic;
//! what draws random numbers takes a stream. Knows no tables and no plans.

mod bootstrap;
mod cell;
#[cfg(test)]
mod coverage;
mod draw;
mod holm;
mod interval;
mod mcnemar;
mod paired;
mod student;
mod wilson;

pub use bootstrap::paired_bootstrap;
pub use cell::{CellSummary, Replicate};
pub use draw::{SeedDraw, resample, share_at_least};
pub use holm::holm;
pub use interval::{Interval, Method, percentile_interval};
pub use mcnemar::{McNemar, mcnemar};
pub use paired::{PairedDifference, paired_difference};
pub use student::{mean, mean_interval, sd};
pub use wilson::wilson;
