//! What can be measured on the examples of an attack, one file each, listed in [`METRICS`].

mod accuracy;
mod accuracy_before;
mod auc;
mod changed_characters;
mod changed_share;
mod class_counts;
mod confusion;
mod ece;
pub mod entry;
mod f1;
mod kept_share;
mod macro_f1;
mod mean_characters;
mod mean_queries;
mod mean_words;
mod median_queries;
mod median_words;
mod micro_f1;
mod miss_rate;
mod operation_share;
pub mod option;
mod precision;
mod recall;
pub mod rows;
mod success_queries;
mod success_rate;
mod success_rate_all;
mod success_rate_correct;
mod words;

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;

use crate::Failure;
use entry::{Metric, Number};
use rows::AttackedRows;

/// Every metric. To add one: a file, a `mod` line above and an entry here.
pub static METRICS: &[&dyn Metric] = &[
    &accuracy::Accuracy,
    &accuracy_before::AccuracyBefore,
    &macro_f1::MacroF1,
    &micro_f1::MicroF1,
    &precision::Precision,
    &recall::Recall,
    &f1::F1,
    &auc::Auc,
    &ece::Ece,
    &miss_rate::MissRate,
    &confusion::Confusion,
    &success_rate::SuccessRate,
    &success_rate_correct::SuccessRateCorrect,
    &success_rate_all::SuccessRateAll,
    &median_words::MedianWords,
    &mean_words::MeanWords,
    &words::Words,
    &changed_share::ChangedShare,
    &changed_characters::ChangedCharacters,
    &operation_share::OperationShare,
    &kept_share::KeptShare,
    &mean_characters::MeanCharacters,
    &mean_queries::MeanQueries,
    &median_queries::MedianQueries,
    &success_queries::SuccessQueries,
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

/// Measures the rows at these places of a table of examples. Options that are not given have their defaults.
pub fn measure(
    metric: &dyn Metric,
    table: &RecordBatch,
    places: &[usize],
    options: &BTreeMap<String, i64>,
) -> Result<Vec<Number>, Failure> {
    metric.measure(&AttackedRows::new(table, places, options))
}
