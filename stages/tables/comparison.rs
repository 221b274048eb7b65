//! The table `comparison` of an adversarial retraining: the old model and the new one.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("comparison", "adversarial-retrain", "A row `before` for the old model and a row `after` for the new one.", {
    MODEL = "model": "string", "`before` or `after`.";
    CLEAN_ACCURACY = "clean_accuracy": "float64", "The accuracy on all rows of the test split.";
    CLEAN_ITEMS = "clean_items": "int64", "How many rows that is.";
    ATTACKED_ACCURACY = "attacked_accuracy": "float64", "The accuracy on rows under the attack, each model attacked anew.";
    SUCCESS_RATE = "success_rate": "float64", "The share of successful attacks among attacked rows that were classified correctly before; null if there were none.";
    ITEMS = "items": "int64", "How many rows were attacked.";
});

/// One row.
pub struct ComparisonRow {
    /// `before` or `after`.
    pub model: &'static str,
    /// The accuracy on all rows.
    pub clean_accuracy: f64,
    /// How many rows that is.
    pub clean_items: usize,
    /// The accuracy under attack.
    pub attacked_accuracy: Option<f64>,
    /// The share of successful attacks. Of nothing there is no share: null, and not NaN.
    pub success_rate: Option<f64>,
    /// How many rows were attacked.
    pub items: usize,
}

/// The rows as a table.
pub fn write(rows: &[ComparisonRow]) -> RecordBatch {
    let float = |get: fn(&ComparisonRow) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(rows.iter().map(get)))
    };
    let int = |get: fn(&ComparisonRow) -> usize| -> ArrayRef {
        let ints = rows.iter().map(|row| get(row) as i64);
        Arc::new(Int64Array::from_iter_values(ints))
    };
    let models = StringArray::from_iter_values(rows.iter().map(|row| row.model));
    let columns: Vec<(&str, ArrayRef)> = vec![
        (MODEL, Arc::new(models)),
        (CLEAN_ACCURACY, float(|row| Some(row.clean_accuracy))),
        (CLEAN_ITEMS, int(|row| row.clean_items)),
        (ATTACKED_ACCURACY, float(|row| row.attacked_accuracy)),
        (SUCCESS_RATE, float(|row| row.success_rate)),
        (ITEMS, int(|row| row.items)),
    ];
    with_metadata(columns, Metadata::default())
}
