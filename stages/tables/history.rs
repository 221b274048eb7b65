//! The table `history`: a training, epoch by epoch.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
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

table!("history", "train", "A row for each epoch. No times: the same key gives the same bytes.", {
    ATTEMPT = "attempt": "int64", "Which attempt, from 1: `restarts` begin again from new initial weights.";
    EPOCH = "epoch": "int64", "The epoch, from 1.";
    STEP = "step": "int64", "Optimiser steps taken so far.";
    LOSS = "loss": "float64", "The mean loss of the epoch's batches.";
    TRAIN_ACCURACY = "train_accuracy": "float64", "The accuracy on the probed training rows.";
    DEV_LOSS = "dev_loss": "float64", "The loss on all dev rows.";
    DEV_ACCURACY = "dev_accuracy": "float64", "The accuracy on all dev rows.";
});

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
