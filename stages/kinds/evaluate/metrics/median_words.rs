//! `metric = "median_words"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{SUCCESS, WORDS_CHANGED};

/// The metric.
pub struct MedianWords;

impl Metric for MedianWords {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "median_words",
            file: "stages/kinds/evaluate/metrics/median_words.rs",
            summary: "Median number of words changed in successful attacks.",
            rows: "successes",
            columns: &[SUCCESS, WORDS_CHANGED],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::median(rows.words_of_successes()?)])
    }
}
