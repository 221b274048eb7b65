//! `metric = "mean_characters"`: how many characters successful attacks changed.
//!
//! The sum over the edits of a row of the Levenshtein distance between what was there before and after: 1 for an
//! edited character, and for a replaced word the least number of characters inserted, deleted and replaced.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{NEW, OLD, SUCCESS};

/// The metric.
pub struct MeanCharacters;

impl Metric for MeanCharacters {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "mean_characters",
            file: "stages/kinds/evaluate/metrics/mean_characters.rs",
            summary: "Mean number of characters changed in successful attacks: the sum over edits of the Levenshtein distance between `old` and `new`.",
            rows: "successes",
            columns: &[SUCCESS, OLD, NEW],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (old, new) = (rows.edits(OLD)?, rows.edits(NEW)?);
        if are_ids(&old) && are_ids(&new) {
            return Err(Failure::new(
                "the edits of these examples are ids, which have no characters to compare",
            )
            .help("connect the input `vocab` of the attack stage"));
        }
        let edits = old.iter().zip(&new).zip(rows.success()?);
        let successes = edits.filter(|(_, success)| *success);
        let characters = successes.map(|((old, new), _)| {
            let pairs = old.iter().zip(new);
            pairs.map(|(old, new)| distance(old, new)).sum::<i64>()
        });
        let characters: Vec<i64> = characters.collect();
        Ok(vec![Number::mean(&characters)])
    }
}

/// Whether edits are written as ids, because no vocabulary was connected: then all of them are numbers.
fn are_ids(edits: &[Vec<String>]) -> bool {
    let mut written = edits.iter().flatten().filter(|text| !text.is_empty());
    let is_id = |text: &String| text.parse::<u32>().is_ok();
    written.clone().next().is_some() && written.all(is_id)
}

/// The least number of characters inserted, deleted and replaced.
fn distance(old: &str, new: &str) -> i64 {
    let new: Vec<char> = new.chars().collect();
    let mut row: Vec<i64> = (0..=new.len() as i64).collect();
    for (n, a) in old.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = n as i64 + 1;
        for (m, b) in new.iter().enumerate() {
            let above = row[m + 1];
            let replaced = diagonal + i64::from(a != *b);
            row[m + 1] = replaced.min(above + 1).min(row[m] + 1);
            diagonal = above;
        }
    }
    row[new.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_by_hand() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("good", "good"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("naïve", "naive"), 1);
        assert_eq!(distance("a", "b"), 1);
    }
}
