//! The table `history`: a training, epoch by epoch.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::{Column, TableSchema};
use super::weights::with_metadata;

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

/// How often training began from new initial weights.
pub const ATTEMPT: &str = "attempt";
/// The epoch.
pub const EPOCH: &str = "epoch";
/// Steps taken so far.
pub const STEP: &str = "step";
/// Training loss.
pub const LOSS: &str = "loss";
/// Training accuracy.
pub const TRAIN_ACCURACY: &str = "train_accuracy";
/// Dev loss.
pub const DEV_LOSS: &str = "dev_loss";
/// Dev accuracy.
pub const DEV_ACCURACY: &str = "dev_accuracy";

/// The columns.
pub static SCHEMA: TableSchema = TableSchema {
    name: "history",
    made_by: "train",
    summary: "A row for each epoch. No times: the same key gives the same bytes.",
    columns: &[
        Column::new(
            ATTEMPT,
            "int64",
            "Which attempt, from 1: `restarts` begin again from new initial weights.",
        ),
        Column::new(EPOCH, "int64", "The epoch, from 1."),
        Column::new(STEP, "int64", "Optimiser steps taken so far."),
        Column::new(LOSS, "float64", "The mean loss of the epoch's batches."),
        Column::new(
            TRAIN_ACCURACY,
            "float64",
            "The accuracy on the probed training rows.",
        ),
        Column::new(DEV_LOSS, "float64", "The loss on all dev rows."),
        Column::new(DEV_ACCURACY, "float64", "The accuracy on all dev rows."),
    ],
};

/// Epoch by epoch.
pub fn write(epochs: &[EpochRecord]) -> RecordBatch {
    let ints = |get: fn(&EpochRecord) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(epochs.iter().map(get)))
    };
    let floats = |get: fn(&EpochRecord) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(epochs.iter().map(get)))
    };
    let columns = vec![
        (ATTEMPT, ints(|e| e.attempt)),
        (EPOCH, ints(|e| e.epoch)),
        (STEP, ints(|e| e.step)),
        (LOSS, floats(|e| e.loss)),
        (TRAIN_ACCURACY, floats(|e| e.train_accuracy)),
        (DEV_LOSS, floats(|e| e.dev_loss)),
        (DEV_ACCURACY, floats(|e| e.dev_accuracy)),
    ];
    with_metadata(columns, Metadata::default())
}
