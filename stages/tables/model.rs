//! The table `model`: a trained model in one row.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("model", "train", "One row. `select` reads its `dev_accuracy`.", {
    MODEL = "model": "string", "The name of the model.";
    WEIGHTS = "weights": "int64", "Number of parameters.";
    CLASSES = "classes": "int64", "How many classes it knows.";
    ROWS = "rows": "int64", "How many rows it was trained on.";
    ATTEMPTS = "attempts": "int64", "How often training began.";
    EPOCHS = "epochs": "int64", "How many epochs the last attempt had.";
    STEPS = "steps": "int64", "How many optimiser steps.";
    BEST_EPOCH = "best_epoch": "int64", "The epoch whose weights are kept.";
    TRAIN_ACCURACY = "train_accuracy": "float64", "The accuracy on the probed training rows after that epoch.";
    DEV_ACCURACY = "dev_accuracy": "float64", "The accuracy on the dev rows after that epoch.";
    CARD = "card": "string", "The model card, as JSON: what is needed to build the model again.";
});

/// The row.
pub struct ModelRow<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// Number of parameters.
    pub weights: usize,
    /// How many classes it knows.
    pub classes: i64,
    /// How many rows it was trained on.
    pub rows: usize,
    /// How often training began.
    pub attempts: i64,
    /// How many epochs the last attempt had.
    pub epochs: i64,
    /// How many steps.
    pub steps: i64,
    /// The epoch whose weights are kept.
    pub best_epoch: i64,
    /// Accuracy on the probed training rows after it.
    pub train_accuracy: Option<f64>,
    /// Accuracy on the dev rows after it.
    pub dev_accuracy: Option<f64>,
    /// The model card.
    pub card: &'a str,
}

/// The row as a table.
pub fn write(row: &ModelRow<'_>) -> RecordBatch {
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text.to_owned()])) };
    let int = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let columns = vec![
        (MODEL, text(row.model)),
        (WEIGHTS, int(row.weights as i64)),
        (CLASSES, int(row.classes)),
        (ROWS, int(row.rows as i64)),
        (ATTEMPTS, int(row.attempts)),
        (EPOCHS, int(row.epochs)),
        (STEPS, int(row.steps)),
        (BEST_EPOCH, int(row.best_epoch)),
        (TRAIN_ACCURACY, float(row.train_accuracy)),
        (DEV_ACCURACY, float(row.dev_accuracy)),
        (CARD, text(row.card)),
    ];
    with_metadata(columns, Metadata::default())
}
