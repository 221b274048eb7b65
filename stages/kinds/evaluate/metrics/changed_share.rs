//! `metric = "changed_share"`: the perturbation rate of papers.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{ORIGINAL, SUCCESS, WORDS_CHANGED};

/// The metric.
pub struct ChangedShare;

impl Metric for ChangedShare {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "changed_share",
            file: "stages/kinds/evaluate/metrics/changed_share.rs",
            summary: "Mean over successful attacks of the words changed divided by the tokens of the original; padding at its end is not counted.",
            rows: "successes",
            columns: &[SUCCESS, WORDS_CHANGED, ORIGINAL],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (words, texts) = (rows.words_changed()?, rows.tokens(ORIGINAL)?);
        let of_rows = words.into_iter().zip(texts).zip(rows.success()?);
        let successes = of_rows.filter(|(_, success)| *success);
        let shares = successes.map(|((words, text), _)| words as f64 / text.len().max(1) as f64);
        let shares: Vec<f64> = shares.collect();
        Ok(vec![Number::mean_of(&shares, shares.len())])
    }
}
