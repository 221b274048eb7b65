//! `metric = "words"`.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{SUCCESS, WORDS_CHANGED};

/// The metric.
pub struct Words;

impl Metric for Words {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "words",
            file: "stages/kinds/evaluate/metrics/words.rs",
            summary: "Successful attacks by the number of words changed: one count for each `{words}` from 1 to the largest, zeros included.",
            rows: "successes",
            columns: &[SUCCESS, WORDS_CHANGED],
            placeholders: &["words"],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let changed = rows.words_of_successes()?;
        let largest = changed.iter().copied().max().unwrap_or(0);
        let count = |words: i64| Number {
            value: Some(changed.iter().filter(|w| **w == words).count() as f64),
            n: Some(changed.len() as u64),
            about: vec![("words", words)],
        };
        Ok((1..=largest).map(count).collect())
    }
}
