//! The table `by_confidence` of an attack: the examples of each confidence, one below the other.
//!
//! Its other columns are those of `examples`, so that every metric can be measured on it; `confidence` is an axis of it
//! as others are, which a cell must name or choose.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;
use crate::params::settings::Settings;

table!("by_confidence", "attack", "A row for each attacked item and each confidence up to the parameter `confidence` (0, 0.5, 0.6, …), with the columns of `examples`: the first text that the model misclassified with that confidence, or where the attack ended.", {
    CONFIDENCE = "confidence": "float64", "The least probability of the predicted class that makes a success; 0 = any.";
});

/// Whether an attack with these parameters makes the table: with a confidence.
pub fn is_made(settings: Settings<'_>) -> bool {
    settings.maybe_float(CONFIDENCE).is_some_and(|c| c > 0.0)
}

/// Examples with the confidence of each row.
pub fn write(examples: &RecordBatch, confidences: &[f32]) -> RecordBatch {
    // 0.6 is 0.6 in either precision.
    let plain = |c: &f32| c.to_string().parse().unwrap_or(f64::from(*c));
    let confidences = Float64Array::from_iter_values(confidences.iter().map(plain));
    let schema = examples.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.zip(examples.columns().iter().cloned());
    let own: (&str, ArrayRef) = (CONFIDENCE, Arc::new(confidences));
    with_metadata(columns.chain([own]).collect(), schema.metadata().clone())
}
