//! `metric = "confusion"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct Confusion;

impl Metric for Confusion {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "confusion",
            file: "stages/kinds/evaluate/metrics/confusion.rs",
            summary: "How many rows of a class were predicted as which class after the attack: one number for each `{true}` and `{predicted}`.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &["true", "predicted"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (label, after) = (rows.label()?, rows.predicted_after()?);
        let classes = rows.classes()?;
        let pairs = classes
            .clone()
            .flat_map(|actual| classes.clone().map(move |predicted| (actual, predicted)));
        let count = |(actual, predicted): (i64, i64)| {
            let rows = label.iter().zip(&after);
            let hits = rows.filter(|(l, a)| **l == actual && **a == predicted);
            Number {
                value: Some(hits.count() as f64),
                n: Some(label.len() as u64),
                about: vec![("true", actual), ("predicted", predicted)],
            }
        };
        Ok(pairs.map(count).collect())
    }
}
