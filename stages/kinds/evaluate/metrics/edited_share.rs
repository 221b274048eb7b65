//! `metric = "edited_share"`: the perturbation rate of attacks on characters.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{ORIGINAL, POSITIONS, SUCCESS};

/// The metric.
pub struct EditedShare;

impl Metric for EditedShare {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "edited_share",
            file: "stages/kinds/evaluate/metrics/edited_share.rs",
            summary: "Mean over successful attacks of the edits divided by the characters (of a text of words: the tokens) of the original; padding is not counted.",
            rows: "successes",
            columns: &[SUCCESS, POSITIONS, ORIGINAL],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (edits, texts) = (rows.int_lists(POSITIONS)?, rows.int_lists(ORIGINAL)?);
        let of_rows = edits.into_iter().zip(texts).zip(rows.success()?);
        let successes = of_rows.filter(|(_, success)| *success);
        let shares = successes.map(|((edits, text), _)| share(edits.len(), &text));
        let shares: Vec<f64> = shares.collect();
        Ok(vec![Number::mean_of(&shares, shares.len())])
    }
}

/// Words of a grid are padded each, so that padding is not only at the end. [PAD] has the id 0 in every vocabulary that
/// a tokenize stage makes.
fn share(edits: usize, text: &[i32]) -> f64 {
    let characters = text.iter().filter(|id| **id != 0).count();
    edits as f64 / characters.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn padding_inside_a_grid_is_not_counted() {
        assert_eq!(share(1, &[5, 6, 0, 0, 7, 8, 0, 0]), 0.25);
        assert_eq!(share(2, &[5, 6]), 1.0);
        assert_eq!(share(0, &[]), 0.0);
    }
}
