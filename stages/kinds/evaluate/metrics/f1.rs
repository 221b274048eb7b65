//! `metric = "f1"`.

use super::class_counts::ClassCounts;
use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct F1;

impl Metric for F1 {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "f1",
            file: "stages/kinds/evaluate/metrics/f1.rs",
            summary: "Harmonic mean of precision and recall after the attack, 2 TP / (2 TP + FP + FN): one number for each `{class}`.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &["class"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let number = |of: &ClassCounts| Number {
            value: of.f1(),
            n: Some(rows.count() as u64),
            about: vec![("class", of.class)],
        };
        Ok(ClassCounts::all(rows)?.iter().map(number).collect())
    }
}
