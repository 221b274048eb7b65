//! `metric = "median_queries"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{BACKWARD, FORWARD};

/// The metric.
pub struct MedianQueries;

impl Metric for MedianQueries {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "median_queries",
            file: "stages/kinds/evaluate/metrics/median_queries.rs",
            summary: "Median number of forward and backward passes per row.",
            rows: "all rows",
            columns: &[FORWARD, BACKWARD],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        Ok(vec![Number::median(rows.queries()?)])
    }
}
