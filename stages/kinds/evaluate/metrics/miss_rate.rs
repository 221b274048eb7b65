//! `metric = "miss_rate"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct MissRate;

impl Metric for MissRate {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "miss_rate",
            file: "stages/kinds/evaluate/metrics/miss_rate.rs",
            summary: "Fraction of a class predicted wrongly after the attack: one number for each `{true}`.",
            rows: "rows of the class",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &["true"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (label, correct) = (rows.label()?, rows.correct_after()?);
        let of = |class: i64| {
            let rows = label.iter().zip(&correct);
            let of = rows.filter(move |(label, _)| **label == class);
            Number {
                about: vec![("true", class)],
                ..Number::fraction(of.map(|(_, correct)| !correct))
            }
        };
        Ok(rows.classes()?.map(of).collect())
    }
}
