//! `metric = "success_rate_correct"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_BEFORE, SUCCESS};

/// The metric.
pub struct SuccessRateCorrect;

impl Metric for SuccessRateCorrect {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "success_rate_correct",
            file: "stages/kinds/evaluate/metrics/success_rate_correct.rs",
            summary: "Successful attacks divided by the rows predicted correctly before, also those that the attack did not try.",
            rows: "rows correct before",
            columns: &[LABEL, PREDICTED_BEFORE, SUCCESS],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let all = rows.correct_before()?.into_iter().zip(rows.success()?);
        let correct = all.filter(|(correct, _)| *correct);
        Ok(vec![Number::fraction(correct.map(|(_, success)| success))])
    }
}
