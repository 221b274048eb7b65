//! What an attack did, as tables: a row for each item, and one row for all.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Builder, Float64Array, Int32Builder, Int64Array, ListBuilder,
    StringArray, StringBuilder,
};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::numeric::argmax;

use super::context::{Change, Trace};
use crate::tables::weights::with_metadata;

/// One attacked item.
pub struct Outcome {
    /// What names it.
    pub id: String,
    /// The true class.
    pub label: u32,
    /// What the model read before.
    pub original: Sequence,
    /// Probabilities before.
    pub before: Vec<f32>,
    /// Probabilities after.
    pub after: Vec<f32>,
    /// The class that was to be reached, if any wrong one will not do.
    pub wanted: Option<u32>,
    /// What the attack did.
    pub trace: Trace,
}

impl Outcome {
    /// Whether the model was right before.
    pub fn right_before(&self) -> bool {
        argmax(&self.before) == self.label as usize
    }

    /// Whether it is right after.
    pub fn right_after(&self) -> bool {
        argmax(&self.after) == self.label as usize
    }

    /// Whether there was something to win: a right answer that the attack was to change. Rows of the class
    /// that is to be reached are not.
    pub fn tried(&self) -> bool {
        self.right_before() && self.trace.attacked
    }

    /// A right answer became a wrong one, or the one that was wanted.
    pub fn success(&self) -> bool {
        let there = match self.wanted {
            Some(class) => self.trace.attacked && argmax(&self.after) == class as usize,
            None => !self.right_after(),
        };
        self.right_before() && there
    }

    /// The largest change of a number, and the mean over steps of the change's length; of signals.
    pub fn sizes(&self) -> Option<(f64, f64)> {
        let (Sequence::Vectors { dim, data: before }, Sequence::Vectors { data: after, .. }) =
            (&self.original, &self.trace.input)
        else {
            return None;
        };
        let pairs = before.iter().zip(after);
        let change: Vec<f64> = pairs.map(|(x, y)| f64::from(*y) - f64::from(*x)).collect();
        let linf = change.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        let steps = change.chunks(*dim);
        let count = steps.len().max(1) as f64;
        let lengths = steps.map(|d| d.iter().map(|d| d * d).sum::<f64>().sqrt());
        Some((linf, lengths.sum::<f64>() / count))
    }
}

/// `id, label, predicted_before, predicted_after, success, attacked, words_changed, positions,
/// old, new, original, adversarial, p_before, p_after, forward, backward`; signals have also
/// `wanted, linf, mean_l2, halved`
pub fn examples(outcomes: &[Outcome], words: Option<&StringArray>) -> RecordBatch {
    let whole = |get: &dyn Fn(&Outcome) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(outcomes.iter().map(get)))
    };
    let flag = |get: &dyn Fn(&Outcome) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(
            outcomes.iter().map(|o| Some(get(o))),
        ))
    };
    let ids = StringArray::from_iter_values(outcomes.iter().map(|o| o.id.as_str()));
    let positions = |c: &Change| c.position as i32;
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids)),
        ("label", whole(&|o| o.label.into())),
        ("predicted_before", whole(&|o| argmax(&o.before) as i64)),
        ("predicted_after", whole(&|o| argmax(&o.after) as i64)),
        ("success", flag(&Outcome::success)),
        ("attacked", flag(&|o| o.trace.attacked)),
        ("words_changed", whole(&|o| o.trace.changes.len() as i64)),
        (
            "positions",
            numbers(outcomes, |o| {
                o.trace.changes.iter().map(positions).collect()
            }),
        ),
        ("old", changed(outcomes, words, |c| c.old)),
        ("new", changed(outcomes, words, |c| c.new)),
        ("original", inputs(outcomes, |o| &o.original)),
        ("adversarial", inputs(outcomes, |o| &o.trace.input)),
        ("p_before", floats(outcomes, |o| &o.before)),
        ("p_after", floats(outcomes, |o| &o.after)),
        ("forward", whole(&|o| o.trace.forward as i64)),
        ("backward", whole(&|o| o.trace.backward as i64)),
    ];
    let sizes: Option<Vec<(f64, f64)>> = outcomes.iter().map(Outcome::sizes).collect();
    if let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty()) {
        let wanted = outcomes.iter().map(|o| o.wanted.map(i64::from));
        let float = |get: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(sizes.iter().map(get)))
        };
        columns.push(("wanted", Arc::new(Int64Array::from_iter(wanted))));
        columns.push(("linf", float(|sizes| sizes.0)));
        columns.push(("mean_l2", float(|sizes| sizes.1)));
        let halved = outcomes.iter().map(|o| o.trace.halved.map(|n| n as i64));
        columns.push(("halved", Arc::new(Int64Array::from_iter(halved))));
    }
    with_metadata(columns, Metadata::default())
}

/// One row: accuracies before and after, successes, words and queries.
pub fn summary(attack: &str, outcomes: &[Outcome]) -> RecordBatch {
    let count = |test: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|o| test(o)).count();
    let (before, after) = (count(&Outcome::right_before), count(&Outcome::right_after));
    let attacked = count(&|o| o.trace.attacked);
    let tried = count(&Outcome::tried);
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    let mut words: Vec<usize> = outcomes
        .iter()
        .filter(|o| o.success())
        .map(|o| o.trace.changes.len())
        .collect();
    words.sort_unstable();
    // Signals have no words, which is not the same as none changed.
    let worded = outcomes
        .iter()
        .all(|o| !matches!(o.original, Sequence::Vectors { .. }));
    let mean = share(words.iter().sum(), words.len()).filter(|_| worded);
    let middle = median(&words).filter(|_| worded);
    let sum = |get: fn(&Trace) -> u64| outcomes.iter().map(|o| get(&o.trace)).sum::<u64>() as i64;
    let whole = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("attack", Arc::new(StringArray::from(vec![attack]))),
        ("items", whole(outcomes.len() as i64)),
        ("attacked", whole(attacked as i64)),
        ("accuracy_before", float(share(before, outcomes.len()))),
        ("accuracy_after", float(share(after, outcomes.len()))),
        ("successes", whole(words.len() as i64)),
        ("success_rate", float(share(words.len(), tried))),
        ("median_words", float(middle)),
        ("mean_words", float(mean)),
        ("forward", whole(sum(|t| t.forward))),
        ("backward", whole(sum(|t| t.backward))),
    ];
    with_metadata(columns, Metadata::default())
}

/// The middle of sorted numbers, or the mean of the two in the middle.
fn median(sorted: &[usize]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half] as f64),
        _ => Some((sorted[half - 1] + sorted[half]) as f64 / 2.0),
    }
}

fn numbers(outcomes: &[Outcome], get: impl Fn(&Outcome) -> Vec<i32>) -> ArrayRef {
    let mut list = ListBuilder::new(Int32Builder::new());
    for outcome in outcomes {
        list.values().append_slice(&get(outcome));
        list.append(true);
    }
    Arc::new(list.finish())
}

fn floats(outcomes: &[Outcome], get: impl Fn(&Outcome) -> &Vec<f32>) -> ArrayRef {
    let mut list = ListBuilder::new(Float32Builder::new());
    for outcome in outcomes {
        list.values().append_slice(get(outcome));
        list.append(true);
    }
    Arc::new(list.finish())
}

/// The words of the changes; their ids if there is no vocabulary.
fn changed(
    outcomes: &[Outcome],
    words: Option<&StringArray>,
    get: impl Fn(&Change) -> u32,
) -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    for outcome in outcomes {
        for change in &outcome.trace.changes {
            let token = get(change);
            match words {
                Some(words) => list.values().append_value(words.value(token as usize)),
                None => list.values().append_value(token.to_string()),
            }
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

/// Token ids, or the numbers of signals.
fn inputs(outcomes: &[Outcome], get: impl Fn(&Outcome) -> &Sequence) -> ArrayRef {
    let signals = outcomes
        .first()
        .is_some_and(|o| matches!(get(o), Sequence::Vectors { .. }));
    if signals {
        let mut list = ListBuilder::new(Float32Builder::new());
        for outcome in outcomes {
            if let Sequence::Vectors { data, .. } = get(outcome) {
                list.values().append_slice(data);
            }
            list.append(true);
        }
        return Arc::new(list.finish());
    }
    numbers(outcomes, |outcome| match get(outcome) {
        Sequence::Tokens(ids) | Sequence::Chars { ids, .. } => {
            ids.iter().map(|id| *id as i32).collect()
        }
        Sequence::Vectors { .. } => Vec::new(),
    })
}
