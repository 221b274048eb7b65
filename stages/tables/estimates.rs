//! The table `estimates` of an attack that follows gradients: what it expected of single edits, and what they did.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;
use crate::params::settings::Settings;

/// The parameter that asks for it.
pub const PROBES: &str = "probes";

table!("estimates", "attack", "With `probes`, a row for each random legal flip that was tried on an item, and one for the flip with the largest estimate.", {
    ID = "id": "string", "The id of the row.";
    CHOICE = "choice": "string", "`random` or `best`.";
    PROBE = "probe": "int64", "Which of the random flips, from 0; null for the best one.";
    POSITION = "position": "int64", "The word of the flip.";
    SLOT = "slot": "int64", "The character of the word.";
    OLD = "old": "string", "What was there.";
    NEW = "new": "string", "What is there then.";
    ESTIMATED_CHANGE = "estimated_change": "float64", "The change of the loss that the gradient promises.";
    LOSS_CHANGE = "loss_change": "float64", "The true change of the loss.";
    ESTIMATED_RANK = "estimated_rank": "float64", "The rank of the estimate among all random flips, ties by their mean; null for the best one. The correlation of both ranks is Spearman's.";
    LOSS_RANK = "loss_rank": "float64", "The rank of the true change among all random flips.";
});

/// One flip.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRow<'a> {
    /// The id of the row.
    pub id: &'a str,
    /// Which of the random flips; none for the best one.
    pub probe: Option<usize>,
    /// The word, and the character of it.
    pub place: [usize; 2],
    /// What was there, and what is there then.
    pub letters: [String; 2],
    /// The change of the loss that was expected.
    pub estimate: f64,
    /// The true one.
    pub change: f64,
}

/// Whether an attack with these parameters makes the table.
pub fn is_made(settings: Settings<'_>) -> bool {
    settings.maybe_int(PROBES).is_some_and(|probes| probes > 0)
}

/// The flips as a table.
pub fn write(rows: &[ProbeRow<'_>]) -> RecordBatch {
    let random: Vec<&ProbeRow<'_>> = rows.iter().filter(|row| row.probe.is_some()).collect();
    let texts = |get: &dyn Fn(&ProbeRow<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
    };
    let ints = |get: &dyn Fn(&ProbeRow<'_>) -> Option<usize>| -> ArrayRef {
        let numbers = rows.iter().map(|row| get(row).map(|n| n as i64));
        Arc::new(Int64Array::from_iter(numbers))
    };
    let floats = |get: &dyn Fn(&ProbeRow<'_>) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(get)))
    };
    let ranked = |get: &dyn Fn(&ProbeRow<'_>) -> f64| -> ArrayRef {
        let values: Vec<f64> = random.iter().map(|row| get(row)).collect();
        let mut ranks = ranks(&values).into_iter();
        let rank = |row: &ProbeRow<'_>| row.probe.and_then(|_| ranks.next());
        Arc::new(Float64Array::from_iter(rows.iter().map(rank)))
    };
    let choice = |row: &ProbeRow<'_>| match row.probe {
        Some(_) => "random".to_owned(),
        None => "best".to_owned(),
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ID, texts(&|row| row.id.to_owned())),
        (CHOICE, texts(&choice)),
        (PROBE, ints(&|row| row.probe)),
        (POSITION, ints(&|row| Some(row.place[0]))),
        (SLOT, ints(&|row| Some(row.place[1]))),
        (OLD, texts(&|row| row.letters[0].clone())),
        (NEW, texts(&|row| row.letters[1].clone())),
        (ESTIMATED_CHANGE, floats(&|row| row.estimate)),
        (LOSS_CHANGE, floats(&|row| row.change)),
        (ESTIMATED_RANK, ranked(&|row| row.estimate)),
        (LOSS_RANK, ranked(&|row| row.change)),
    ];
    with_metadata(columns, Metadata::default())
}

/// The rank of each number, from 1; equal numbers share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let first = order.partition_point(|n| values[*n] < values[equal[0]]);
        let mean = first as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|n| ranks[*n] = mean);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::ranks;

    #[test]
    fn equal_numbers_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert!(ranks(&[]).is_empty());
    }
}
