//! `metric = "micro_f1"`.

use super::class_counts::ClassCounts;
use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct MicroF1;

impl Metric for MicroF1 {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "micro_f1",
            file: "stages/kinds/evaluate/metrics/micro_f1.rs",
            summary: "F1 of the counts of all classes together, after the attack; with one label per row it equals the accuracy.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let classes = ClassCounts::all(rows)?;
        let sum = |count: fn(&ClassCounts) -> u64| classes.iter().map(count).sum();
        let all = ClassCounts {
            class: 0,
            actual: sum(|of| of.actual),
            predicted: sum(|of| of.predicted),
            correct: sum(|of| of.correct),
        };
        Ok(vec![Number {
            value: all.f1(),
            n: Some(rows.count() as u64),
            about: Vec::new(),
        }])
    }
}
