//! `metric = "precision"`.

use super::class_counts::ClassCounts;
use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct Precision;

impl Metric for Precision {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "precision",
            file: "stages/kinds/evaluate/metrics/precision.rs",
            summary: "Of the rows predicted as a class after the attack, the fraction that have it: one number for each `{class}`.",
            rows: "rows predicted as the class",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &["class"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let number = |of: &ClassCounts| Number {
            value: of.precision(),
            n: Some(of.predicted),
            about: vec![("class", of.class)],
        };
        Ok(ClassCounts::all(rows)?.iter().map(number).collect())
    }
}
