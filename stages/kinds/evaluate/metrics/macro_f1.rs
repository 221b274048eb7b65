//! `metric = "macro_f1"`.

use super::class_counts::ClassCounts;
use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, PREDICTED_AFTER};

/// The metric.
pub struct MacroF1;

impl Metric for MacroF1 {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "macro_f1",
            file: "stages/kinds/evaluate/metrics/macro_f1.rs",
            summary: "Unweighted mean of the F1 of all classes that are actual or predicted after the attack.",
            rows: "all rows",
            columns: &[LABEL, PREDICTED_AFTER],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let classes = ClassCounts::all(rows)?;
        let of_each: Vec<f64> = classes.iter().filter_map(ClassCounts::f1).collect();
        Ok(vec![Number::mean_of(&of_each, rows.count())])
    }
}
