//! `metric = "changed_characters"`: the share of characters that successful attacks edited.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{OPERATIONS, ORIGINAL, SUCCESS};

/// The metric.
pub struct ChangedCharacters;

impl Metric for ChangedCharacters {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "changed_characters",
            file: "stages/kinds/evaluate/metrics/changed_characters.rs",
            summary: "Mean over successful attacks of the edits divided by the characters of the original, padding not counted. For attacks on characters.",
            rows: "successes",
            columns: &[SUCCESS, OPERATIONS, ORIGINAL],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let edits = rows.edits(OPERATIONS)?.into_iter();
        let of_rows = edits.zip(rows.int_lists(ORIGINAL)?).zip(rows.success()?);
        let successes = of_rows.filter(|(_, success)| *success);
        let share = |((edits, ids), _): ((Vec<String>, Vec<i32>), bool)| {
            // [PAD] has the id 0 in every vocabulary that a tokenize stage makes.
            let characters = ids.iter().filter(|id| **id != 0).count();
            edits.len() as f64 / characters.max(1) as f64
        };
        let shares: Vec<f64> = successes.map(share).collect();
        Ok(vec![Number::mean_of(&shares, shares.len())])
    }
}
