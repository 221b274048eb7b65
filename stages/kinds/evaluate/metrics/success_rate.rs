//! `metric = "success_rate"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_BEFORE, SUCCESS};

/// The metric.
pub struct SuccessRate;

impl Metric for SuccessRate {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "success_rate",
            file: "stages/kinds/evaluate/metrics/success_rate.rs",
            summary: "Fraction of the attacked rows, among those correct before, for which the attack succeeded.",
            rows: "rows correct before and attacked",
            columns: &[LABEL, PREDICTED_BEFORE, SUCCESS],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let tried = rows.correct_before()?.into_iter().zip(rows.attacked());
        let successes = tried.zip(rows.success()?);
        let tried = successes.filter(|((correct, attacked), _)| *correct && *attacked);
        Ok(vec![Number::fraction(tried.map(|(_, success)| success))])
    }
}
