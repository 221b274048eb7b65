//! The table `model`: a trained model in one row.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::{Column, TableSchema};
use super::weights::with_metadata;

/// The model.
pub const MODEL: &str = "model";
/// Its size.
pub const WEIGHTS: &str = "weights";
/// Classes.
pub const CLASSES: &str = "classes";
/// Training rows.
pub const ROWS: &str = "rows";
/// Attempts.
pub const ATTEMPTS: &str = "attempts";
/// Epochs.
pub const EPOCHS: &str = "epochs";
/// Steps.
pub const STEPS: &str = "steps";
/// The epoch whose weights are kept.
pub const BEST_EPOCH: &str = "best_epoch";
/// Training accuracy.
pub const TRAIN_ACCURACY: &str = "train_accuracy";
/// Dev accuracy.
pub const DEV_ACCURACY: &str = "dev_accuracy";
/// The model card.
pub const CARD: &str = "card";

/// The columns.
pub static SCHEMA: TableSchema = TableSchema {
    name: "model",
    made_by: "train",
    summary: "One row. `select` reads its `dev_accuracy`.",
    columns: &[
        Column::new(MODEL, "string", "The name of the model."),
        Column::new(WEIGHTS, "int64", "How many numbers its weights are."),
        Column::new(CLASSES, "int64", "How many classes it knows."),
        Column::new(ROWS, "int64", "How many rows it was trained on."),
        Column::new(ATTEMPTS, "int64", "How often training began."),
        Column::new(EPOCHS, "int64", "How many epochs the last attempt had."),
        Column::new(STEPS, "int64", "How many optimiser steps."),
        Column::new(BEST_EPOCH, "int64", "The epoch whose weights are kept."),
        Column::new(
            TRAIN_ACCURACY,
            "float64",
            "The accuracy on the probed training rows after that epoch.",
        ),
        Column::new(
            DEV_ACCURACY,
            "float64",
            "The accuracy on the dev rows after that epoch.",
        ),
        Column::new(
            CARD,
            "string",
            "The model card, as JSON: what is needed to build the model again.",
        ),
    ],
};

/// The row.
pub struct ModelRow<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// How many numbers its weights are.
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
