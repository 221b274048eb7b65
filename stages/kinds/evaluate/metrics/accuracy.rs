//! `metric = "accuracy"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct Accuracy;

impl Metric for Accuracy {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "accuracy",
            file: "stages/kinds/evaluate/metrics/accuracy.rs",
            summary: "Fraction of rows predicted correctly after the attack.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::fraction(rows.correct_after()?)])
    }
}
