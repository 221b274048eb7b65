//! `metric = "accuracy_before"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_BEFORE};

/// The metric.
pub struct AccuracyBefore;

impl Metric for AccuracyBefore {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "accuracy_before",
            file: "stages/kinds/evaluate/metrics/accuracy_before.rs",
            summary: "Fraction of rows predicted correctly before the attack.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_BEFORE],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::fraction(rows.correct_before()?)])
    }
}
