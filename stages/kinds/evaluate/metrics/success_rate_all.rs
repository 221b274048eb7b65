//! `metric = "success_rate_all"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::SUCCESS;

/// The metric.
pub struct SuccessRateAll;

impl Metric for SuccessRateAll {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "success_rate_all",
            file: "stages/kinds/evaluate/metrics/success_rate_all.rs",
            summary: "Successful attacks divided by all rows, also those predicted wrongly before the attack.",
            rows: "all rows",
            columns: &[SUCCESS],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::fraction(rows.success()?)])
    }
}
