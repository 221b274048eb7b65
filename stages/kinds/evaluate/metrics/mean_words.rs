//! `metric = "mean_words"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{SUCCESS, WORDS_CHANGED};

/// The metric.
pub struct MeanWords;

impl Metric for MeanWords {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "mean_words",
            file: "stages/kinds/evaluate/metrics/mean_words.rs",
            summary: "Mean number of words changed in successful attacks.",
            rows: "successes",
            columns: &[SUCCESS, WORDS_CHANGED],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::mean(&rows.words_of_successes()?)])
    }
}
