//! `metric = "mean_queries"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{BACKWARD, FORWARD};

/// The metric.
pub struct MeanQueries;

impl Metric for MeanQueries {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "mean_queries",
            file: "stages/kinds/evaluate/metrics/mean_queries.rs",
            summary: "Mean number of forward and backward passes per row.",
            rows: "all rows",
            columns: &[FORWARD, BACKWARD],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::mean(&rows.queries()?)])
    }
}
