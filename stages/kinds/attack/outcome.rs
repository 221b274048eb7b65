//! What an attack did, measured afresh: a row for each item, and one row for all.

use arrow::array::StringArray;
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::numeric::argmax;

use super::edit::{Change, Edit};
use super::entry::AttackEntry;
use super::goals::{Answer, Goal};
use super::trace::Trace;
use crate::tables::by_confidence;
use crate::tables::estimates::{self, ProbeRow};
use crate::tables::examples::{self, EditRow, ExampleRow, Layout};
use crate::tables::summary::{self, Summary};

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
    /// What was wanted.
    pub goal: Goal,
    /// What the attack did.
    pub trace: Trace,
    /// The same with each lower confidence, if one was wanted.
    pub lower: Vec<Outcome>,
}

impl Outcome {
    /// Whether the prediction was correct before.
    pub fn correct_before(&self) -> bool {
        argmax(&self.before) == self.label as usize
    }

    /// Whether it is correct after.
    pub fn correct_after(&self) -> bool {
        argmax(&self.after) == self.label as usize
    }

    /// Whether there was something to win: a correct prediction that the attack was to change. Rows of the target
    /// class are not.
    pub fn tried(&self) -> bool {
        self.correct_before() && self.trace.attacked
    }

    /// Whether a correct prediction became what was wanted.
    pub fn success(&self) -> bool {
        let reached = self.goal.reached(Answer::Probabilities(&self.after));
        // A row of the target class is left alone, and has reached it already.
        let moved = self.goal.target().is_none() || self.trace.attacked;
        self.correct_before() && moved && reached
    }

    /// How many words were changed: the edits, or the words whose characters were.
    fn words_changed(&self) -> usize {
        let edits = &self.trace.edits;
        let mut words: Vec<usize> = edits.iter().filter_map(of_a_character).collect();
        let whole = edits.len() - words.len();
        words.sort_unstable();
        words.dedup();
        whole + words.len()
    }
}

/// The word whose character an edit changes.
fn of_a_character(edit: &Edit) -> Option<usize> {
    match edit {
        Edit::Character { position, .. } => Some(*position),
        _ => None,
    }
}

/// The table `examples`. `symbols`: the words, or the characters of a grid, by id.
pub fn examples(
    entry: &AttackEntry,
    outcomes: &[Outcome],
    symbols: Option<&StringArray>,
) -> RecordBatch {
    table(entry, outcomes.iter(), symbols)
}

/// The table `by_confidence`.
pub fn by_confidence(
    entry: &AttackEntry,
    outcomes: &[Outcome],
    symbols: Option<&StringArray>,
) -> RecordBatch {
    let all: Vec<&Outcome> = outcomes
        .iter()
        .flat_map(|o| o.lower.iter().chain([o]))
        .collect();
    let confidences: Vec<f32> = all.iter().map(|o| o.goal.confidence()).collect();
    by_confidence::write(&table(entry, all.into_iter(), symbols), &confidences)
}

fn table<'a>(
    entry: &AttackEntry,
    outcomes: impl Iterator<Item = &'a Outcome>,
    symbols: Option<&StringArray>,
) -> RecordBatch {
    let rows = outcomes.map(|outcome| row(outcome, symbols));
    let rows: Vec<ExampleRow<'_>> = rows.collect();
    let layout = Layout {
        edits: entry.changes.edited(),
        counters: entry.counters,
    };
    examples::write(&rows, layout)
}

fn row<'a>(outcome: &'a Outcome, symbols: Option<&StringArray>) -> ExampleRow<'a> {
    let edits = outcome.trace.edits.iter();
    ExampleRow {
        id: &outcome.id,
        label: outcome.label,
        success: outcome.success(),
        attacked: outcome.trace.attacked,
        words_changed: outcome.words_changed(),
        edits: edits.map(|edit| edit_row(edit, symbols)).collect(),
        original: &outcome.original,
        adversarial: &outcome.trace.input,
        before: &outcome.before,
        after: &outcome.after,
        wanted: outcome.goal.target(),
        counters: &outcome.trace.counters,
    }
}

/// An edit in words, or in ids if there is no vocabulary.
fn edit_row(edit: &Edit, symbols: Option<&StringArray>) -> EditRow {
    let symbol = |id: u32| match symbols {
        Some(symbols) => symbols.value(id as usize).to_owned(),
        None => id.to_string(),
    };
    let row = |position: usize, slot: usize, change: Change<String>| EditRow {
        operation: change.operation(),
        position,
        slot,
        old: change.before().unwrap_or_default(),
        new: change.after().unwrap_or_default(),
    };
    match *edit {
        Edit::Word { position, change } => row(position, 0, change.map(symbol)),
        Edit::Character {
            position,
            slot,
            change,
            ..
        } => row(position, slot, change.map(symbol)),
        Edit::Number {
            position,
            slot,
            change,
        } => row(position, slot, change.map(|number| number.to_string())),
    }
}

/// The table `estimates`.
pub fn estimates(outcomes: &[Outcome], symbols: Option<&StringArray>) -> RecordBatch {
    let mut rows = Vec::new();
    for outcome in outcomes {
        rows.extend(outcome.trace.probes.iter().map(|probe| {
            let edit = edit_row(&probe.edit, symbols);
            ProbeRow {
                id: &outcome.id,
                probe: probe.number,
                place: [edit.position, edit.slot],
                letters: [edit.old, edit.new],
                estimate: probe.estimate,
                change: probe.change,
            }
        }));
    }
    estimates::write(&rows)
}

/// The table `summary`.
pub fn summary(attack: &str, outcomes: &[Outcome]) -> RecordBatch {
    let count = |test: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|o| test(o)).count();
    let passes = |name: &str| {
        let counts = outcomes.iter().filter_map(|o| o.trace.counters.get(name));
        counts.sum()
    };
    let succeeded = outcomes.iter().filter(|o| o.success());
    summary::write(&Summary {
        attack,
        items: outcomes.len(),
        attacked: count(&|o| o.trace.attacked),
        correct_before: count(&Outcome::correct_before),
        correct_after: count(&Outcome::correct_after),
        tried: count(&Outcome::tried),
        words: succeeded.map(Outcome::words_changed).collect(),
        worded: count(&|o| matches!(o.original, Sequence::Vectors(_))) == 0,
        passes: [passes(examples::FORWARD), passes(examples::BACKWARD)],
    })
}
