//! The table `summary` of an attack: one row for all items.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("summary", "attack", "One row for all items of an attack.", {
    ATTACK = "attack": "string", "The attack.";
    ITEMS = "items": "int64", "How many items there are.";
    ATTACKED = "attacked": "int64", "How many of them were attacked.";
    ACCURACY_BEFORE = "accuracy_before": "float64", "The model's accuracy before the attack.";
    ACCURACY_AFTER = "accuracy_after": "float64", "The model's accuracy after the attack.";
    SUCCESSES = "successes": "int64", "How many attacks succeeded.";
    SUCCESS_RATE = "success_rate": "float64", "Their share of the attacked items that were classified correctly before; null if there were none.";
    MEDIAN_WORDS = "median_words": "float64", "The median number of words changed by successful attacks; null for signals.";
    MEAN_WORDS = "mean_words": "float64", "The mean number of words changed by successful attacks; null for signals.";
    FORWARD = "forward": "int64", "Forward passes through the model, of all items.";
    BACKWARD = "backward": "int64", "Backward passes through the model, of all items.";
});

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
