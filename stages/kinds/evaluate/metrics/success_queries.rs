//! `metric = "success_queries"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{BACKWARD, FORWARD, SUCCESS};

/// The metric.
pub struct SuccessQueries;

impl Metric for SuccessQueries {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "success_queries",
            file: "stages/kinds/evaluate/metrics/success_queries.rs",
            summary: "Mean number of forward and backward passes of successful attacks.",
            rows: "successes",
            columns: &[FORWARD, BACKWARD, SUCCESS],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let queries = rows.queries()?.into_iter().zip(rows.success()?);
        let of_successes = queries.filter(|(_, success)| *success);
        let queries: Vec<i64> = of_successes.map(|(queries, _)| queries).collect();
        Ok(vec![Number::mean(&queries)])
    }
}
