//! `metric = "recall"`.

use super::class_counts::ClassCounts;
use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct Recall;

impl Metric for Recall {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "recall",
            file: "stages/kinds/evaluate/metrics/recall.rs",
            summary: "Of the rows of a class, the fraction predicted as such after the attack: one number for each `{class}`.",
            rows: "rows of the class",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &["class"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let number = |of: &ClassCounts| Number {
            value: of.recall(),
            n: Some(of.actual),
            about: vec![("class", of.class)],
        };
        Ok(ClassCounts::all(rows)?.iter().map(number).collect())
    }
}
