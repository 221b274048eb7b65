//! The table `summary` of an attack: one row for all items.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::{Column, TableSchema};
use super::weights::with_metadata;

/// The attack.
pub const ATTACK: &str = "attack";
/// Items.
pub const ITEMS: &str = "items";
/// Those that were attacked.
pub const ATTACKED: &str = "attacked";
/// Accuracy before.
pub const ACCURACY_BEFORE: &str = "accuracy_before";
/// Accuracy after.
pub const ACCURACY_AFTER: &str = "accuracy_after";
/// Attacks that succeeded.
pub const SUCCESSES: &str = "successes";
/// Their share.
pub const SUCCESS_RATE: &str = "success_rate";
/// Words changed, the median.
pub const MEDIAN_WORDS: &str = "median_words";
/// Words changed, the mean.
pub const MEAN_WORDS: &str = "mean_words";
/// Forward passes.
pub const FORWARD: &str = "forward";
/// Backward passes.
pub const BACKWARD: &str = "backward";

/// The columns.
pub static SCHEMA: TableSchema = TableSchema {
    name: "summary",
    made_by: "attack",
    summary: "One row for all items of an attack.",
    columns: &[
        Column::new(ATTACK, "string", "The attack."),
        Column::new(ITEMS, "int64", "How many items there are."),
        Column::new(ATTACKED, "int64", "How many of them were attacked."),
        Column::new(
            ACCURACY_BEFORE,
            "float64",
            "The model's accuracy before the attack.",
        ),
        Column::new(
            ACCURACY_AFTER,
            "float64",
            "The model's accuracy after the attack.",
        ),
        Column::new(SUCCESSES, "int64", "How many attacks succeeded."),
        Column::new(
            SUCCESS_RATE,
            "float64",
            "Their share of the attacked items that were classified correctly before; null if there were none.",
        ),
        Column::new(
            MEDIAN_WORDS,
            "float64",
            "The median number of words changed by successful attacks; null for signals.",
        ),
        Column::new(
            MEAN_WORDS,
            "float64",
            "The mean number of words changed by successful attacks; null for signals.",
        ),
        Column::new(
            FORWARD,
            "int64",
            "Forward passes through the model, of all items.",
        ),
        Column::new(
            BACKWARD,
            "int64",
            "Backward passes through the model, of all items.",
        ),
    ],
};

/// The row.
pub struct Summary<'a> {
    /// The attack.
    pub attack: &'a str,
    /// How many items there are.
    pub items: usize,
    /// How many of them were attacked.
    pub attacked: usize,
    /// How many were classified correctly before.
    pub correct_before: usize,
    /// How many are after.
    pub correct_after: usize,
    /// How many were classified correctly before and attacked.
    pub tried: usize,
    /// The number of words changed by each attack that succeeded.
    pub words: Vec<usize>,
    /// Whether items have words. Signals have none, which is not the same as none changed.
    pub worded: bool,
    /// Forward and backward passes.
    pub passes: [u64; 2],
}

/// The row as a table.
pub fn write(summary: &Summary<'_>) -> RecordBatch {
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    let mut words = summary.words.clone();
    words.sort_unstable();
    let mean = share(words.iter().sum(), words.len()).filter(|_| summary.worded);
    let middle = median(&words).filter(|_| summary.worded);
    let int = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ATTACK, Arc::new(StringArray::from(vec![summary.attack]))),
        (ITEMS, int(summary.items as i64)),
        (ATTACKED, int(summary.attacked as i64)),
        (
            ACCURACY_BEFORE,
            float(share(summary.correct_before, summary.items)),
        ),
        (
            ACCURACY_AFTER,
            float(share(summary.correct_after, summary.items)),
        ),
        (SUCCESSES, int(words.len() as i64)),
        (SUCCESS_RATE, float(share(words.len(), summary.tried))),
        (MEDIAN_WORDS, float(middle)),
        (MEAN_WORDS, float(mean)),
        (FORWARD, int(summary.passes[0] as i64)),
        (BACKWARD, int(summary.passes[1] as i64)),
    ];
    with_metadata(columns, Metadata::default())
}

/// The middle of sorted numbers, or the mean of the two in the middle.
fn median(sorted: &[usize]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half] as f64),
        _ => Some((sorted[half - 1] + sorted[half]) as f64 / 2.0),
    }
}
