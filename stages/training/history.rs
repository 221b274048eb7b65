//! The table `history`: a training, epoch by epoch.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use crate::tables::weights::with_metadata;

/// One epoch.
#[derive(Clone, Debug, Default)]
pub struct EpochRecord {
    /// Counted from 1: how often training began from new initial weights.
    pub attempt: i64,
    /// Counted from 1.
    pub epoch: i64,
    /// Steps taken so far.
    pub step: i64,
    /// Mean loss of the epoch's batches.
    pub loss: Option<f64>,
    /// Of the probed training rows.
    pub train_accuracy: Option<f64>,
    /// Of all dev rows.
    pub dev_loss: Option<f64>,
    /// Of all dev rows.
    pub dev_accuracy: Option<f64>,
}

/// The columns of the table `history`.
pub const HISTORY: &[&str] = &[
    "attempt",
    "epoch",
    "step",
    "loss",
    "train_accuracy",
    "dev_loss",
    "dev_accuracy",
];

/// Epoch by epoch, as [`HISTORY`] says.
pub fn history(epochs: &[EpochRecord]) -> RecordBatch {
    let ints = |get: fn(&EpochRecord) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(epochs.iter().map(get)))
    };
    let floats = |get: fn(&EpochRecord) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(epochs.iter().map(get)))
    };
    let columns = vec![
        ("attempt", ints(|e| e.attempt)),
        ("epoch", ints(|e| e.epoch)),
        ("step", ints(|e| e.step)),
        ("loss", floats(|e| e.loss)),
        ("train_accuracy", floats(|e| e.train_accuracy)),
        ("dev_loss", floats(|e| e.dev_loss)),
        ("dev_accuracy", floats(|e| e.dev_accuracy)),
    ];
    with_metadata(columns, Metadata::default())
}
