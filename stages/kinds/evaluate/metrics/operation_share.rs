//! `metric = "operation_share"`: of the edits of successful attacks, how many are replacements, inserts and deletes.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{OPERATION_NAMES, OPERATIONS, SUCCESS};

/// The metric.
pub struct OperationShare;

impl Metric for OperationShare {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "operation_share",
            file: "stages/kinds/evaluate/metrics/operation_share.rs",
            summary: "Of the edits of all successful attacks, the fraction of each `{operation}`: replace (a flip of a character), insert or delete.",
            rows: "successes",
            columns: &[SUCCESS, OPERATIONS],
            placeholders: &["operation"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let edits = rows.edits(OPERATIONS)?.into_iter().zip(rows.success()?);
        let successes = edits.filter(|(_, success)| *success);
        let successes: Vec<Vec<String>> = successes.map(|(edits, _)| edits).collect();
        let all: usize = successes.iter().map(Vec::len).sum();
        let share = |(n, name): (usize, &str)| {
            let made = successes.iter().flatten().filter(|edit| *edit == name);
            let made = made.count();
            Number {
                value: (all > 0).then(|| made as f64 / all as f64),
                n: Some(successes.len() as u64),
                about: vec![("operation", n as i64)],
            }
        };
        Ok(OPERATION_NAMES.into_iter().enumerate().map(share).collect())
    }
}
