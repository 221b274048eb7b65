//! What can be measured on the examples of an attack, one file each, listed in [`METRICS`].

mod accuracy;
mod accuracy_before;
mod confusion;
pub mod entry;
mod mean_queries;
mod mean_words;
mod median_words;
mod miss_rate;
pub mod rows;
mod success_rate;
mod words;

use arrow::record_batch::RecordBatch;

use crate::Failure;
use entry::{Metric, Number};
use rows::AttackedRows;

/// Every metric. To add one: a file, a `mod` line above and an entry here.
pub static METRICS: &[&dyn Metric] = &[
    &accuracy::Accuracy,
    &accuracy_before::AccuracyBefore,
    &success_rate::SuccessRate,
    &miss_rate::MissRate,
    &confusion::Confusion,
    &median_words::MedianWords,
    &mean_words::MeanWords,
    &words::Words,
    &mean_queries::MeanQueries,
];

/// The metric of that name.
pub fn find(name: &str) -> Option<&'static dyn Metric> {
    let mut all = METRICS.iter().copied();
    all.find(|metric| metric.entry().name == name)
}

/// The names of all metrics.
pub fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.entry().name)
}

/// Measures the rows at these places of a table of examples.
pub fn measure(
    metric: &dyn Metric,
    table: &RecordBatch,
    places: &[usize],
) -> Result<Vec<Number>, Failure> {
    metric.measure(&AttackedRows::new(table, places))
}
