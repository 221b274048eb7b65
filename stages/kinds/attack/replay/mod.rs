//! Takes an attack at its word: what its table says of each row is recomputed from the row itself.
//!
//! Nothing that the attack said of itself is believed, and none of its code is used: the victim is
//! read from its weights, asked about the original and the adversarial row, and flags, changes,
//! budgets and the summary are worked out here. Decides no result, so it is in no key.

mod edits;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::numeric::argmax;

use crate::kinds::attack::attacks::find;
use crate::kinds::attack::entry::Budget;
use crate::models::loaded::{Loaded, probabilities};
use crate::params::settings::Settings;
use crate::tables::examples::{
    ADVERSARIAL, ATTACKED, Examples, ID, LABEL, OPERATIONS, ORIGINAL, P_AFTER, P_BEFORE,
    PREDICTED_AFTER, PREDICTED_BEFORE, SUCCESS, WANTED, WORDS_CHANGED,
};
use crate::tables::pairs;
use crate::tables::sequences::Form;
use crate::tables::summary;
use crate::tables::vectors;
use crate::{Disagreement, Failure, Outputs, Replayed, Task};
use row::{Report, Row};

/// Recomputes what `examples` and `summary` say. `exact`: probabilities must have the same bits,
/// because they were computed on the same instruction sets.
pub fn replay(task: &Task<'_>, outputs: &Outputs, exact: bool) -> Result<Replayed, Failure> {
    let table = Examples::read(&outputs["examples"])?;
    let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
    let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?;
    let rows = pairs::read_joined(&task.inputs["rows"])?;
    pairs::agree(rows.separator, loaded.card.separator())?;
    let subject = loaded.subject()?;
    let settings = Settings(task.params);
    let mut report = Report::default();

    let split = settings.text("split").unwrap_or("test");
    let places: BTreeMap<&str, usize> = rows
        .split(split)
        .into_iter()
        .map(|row| (rows.ids[row].as_str(), row))
        .collect();
    let repeated = settings.maybe_int("repeats").unwrap_or(1) > 1;
    selection(&table, &places, settings, task.seed, &mut report);
    let mut pairs: Vec<(usize, &Sequence, Sequence)> = Vec::with_capacity(table.len());
    for n in 0..table.len() {
        let id = table.id(n);
        // `wave/3#7` is the eighth attack on `wave/3`.
        let named = id.rsplit_once('#').filter(|_| repeated);
        let Some(row) = places.get(named.map_or(id, |(row, _)| row)) else {
            report.add(n, id, ID, id, &format!("no row of the split `{split}`"));
            continue;
        };
        let original = &rows.examples[*row].input;
        let label = rows
            .label(*row)
            .map_or("none".to_owned(), |l| l.to_string());
        report.same(n, id, LABEL, &table.int(LABEL, n)?.to_string(), &label);
        match (
            table.sequence(ORIGINAL, n, original),
            table.sequence(ADVERSARIAL, n, original),
        ) {
            (Some(stored), Some(adversarial)) => {
                if stored != *original {
                    report.add(n, id, ORIGINAL, "another text", "the row that it names");
                }
                pairs.push((n, original, adversarial));
            }
            _ => report.add(
                n,
                id,
                ADVERSARIAL,
                "cannot be read",
                "a row of the same shape as the original",
            ),
        }
    }
    let before: Vec<&Sequence> = pairs.iter().map(|(_, original, _)| *original).collect();
    let before = probabilities(subject.victim(), &before)?;
    let after: Vec<&Sequence> = pairs
        .iter()
        .map(|(_, _, adversarial)| adversarial)
        .collect();
    let after = probabilities(subject.victim(), &after)?;

    let attack = settings.text("attack").and_then(find);
    let budget = attack.map_or(Budget::Unlimited, |attack| {
        (attack.entry().budget)(settings)
    });
    let mut tally = Tally::default();
    for ((n, original, adversarial), (before, after)) in pairs.iter().zip(before.iter().zip(&after))
    {
        let mut one = Row {
            table: &table,
            n: *n,
            id: table.id(*n),
            report: &mut report,
        };
        one.probabilities(P_BEFORE, before, exact);
        one.probabilities(P_AFTER, after, exact);
        let label = one.table.int(LABEL, *n)?;
        let said = [argmax(before) as i64, argmax(after) as i64];
        one.number(PREDICTED_BEFORE, said[0])?;
        one.number(PREDICTED_AFTER, said[1])?;
        let attacked = one.table.flag(ATTACKED, *n)?;
        let right = said[0] == label;
        let there = match one.table.maybe_int(WANTED, *n) {
            Some(wanted) => attacked && said[1] == wanted,
            None => said[1] != label,
        };
        let success = right && there;
        let stored = one.table.flag(SUCCESS, *n)?;
        one.report.same(
            *n,
            one.id,
            SUCCESS,
            &stored.to_string(),
            &success.to_string(),
        );
        let changed = match (original, adversarial) {
            _ if table.has(OPERATIONS) => one.edits(original, adversarial, task, &rows.form)?,
            (Sequence::Tokens(old), Sequence::Tokens(new)) => {
                [one.words(old, new, task, &rows.form)?; 2]
            }
            _ => {
                // Numbers are not words, and none are changed.
                one.number(WORDS_CHANGED, 0)?;
                [0, 0]
            }
        };
        let moved = *original != adversarial;
        if !attacked && moved {
            one.report
                .add(*n, one.id, ATTACKED, "false", "the row was changed");
        }
        let pad = rows.form.special().unwrap_or_default()[0];
        one.budget(&budget, changed, pad, original, adversarial);
        if let (Budget::Similarity(cosine), Some(vectors)) = (&budget, &connected) {
            one.likeness(*cosine, &budget, vectors, original, adversarial);
        }
        tally.count(right, said[1] == label, success, attacked, changed[0]);
    }
    if report.list.is_empty() {
        let worded = !matches!(rows.form, Form::Signals { .. });
        tally.compare(&outputs["summary"], worded, &mut report);
    }
    Ok(Replayed {
        rows: table.len(),
        successes: tally.successes,
        asked: 2 * pairs.len(),
        budget: budget.to_string(),
        disagreements: report.list,
    })
}

/// Whether these are the rows that were to be attacked, each once: leaving failures out, or
/// listing a success twice, would change the summary and no row.
fn selection(
    table: &Examples<'_>,
    places: &BTreeMap<&str, usize>,
    settings: Settings<'_>,
    seed: u64,
    report: &mut Report,
) {
    let mut seen = BTreeSet::new();
    for n in 0..table.len() {
        let id = table.id(n);
        if !seen.insert(id) {
            report.add(n, id, ID, "twice", "each row once");
        }
    }
    // Which rows `among`, `label` and `repeats` leave depends on the model: only doubles are told.
    let correct = settings.text("among") == Some("correct");
    let repeated = settings.maybe_int("repeats").unwrap_or(1) > 1;
    if correct || repeated || settings.maybe_int("label").is_some() {
        return;
    }
    let mut drawn: Vec<(String, &str)> = places
        .keys()
        .map(|id| {
            let name = format!("{seed}/{id}");
            (store::Digest::of(name.as_bytes()).to_string(), *id)
        })
        .collect();
    drawn.sort_unstable();
    if let Some(items) = settings.maybe_int("items").filter(|items| *items > 0) {
        drawn.truncate(items);
    }
    if let Some((_, id)) = drawn.iter().find(|(_, id)| !seen.contains(id)) {
        report.add(table.len(), id, ID, "missing", "one row per sampled item");
    }
    if seen.len() > drawn.len() {
        let more = format!("{} rows", seen.len());
        report.add(
            table.len(),
            "",
            ID,
            &more,
            &format!("{} items", drawn.len()),
        );
    }
}

/// What the summary must say.
#[derive(Default)]
struct Tally {
    items: usize,
    attacked: usize,
    before: usize,
    after: usize,
    /// Right before, and attacked.
    tried: usize,
    successes: usize,
    words: usize,
}

impl Tally {
    fn count(&mut self, before: bool, after: bool, success: bool, attacked: bool, words: usize) {
        self.items += 1;
        self.attacked += usize::from(attacked);
        self.before += usize::from(before);
        self.after += usize::from(after);
        self.tried += usize::from(before && attacked);
        self.successes += usize::from(success);
        self.words += if success { words } else { 0 };
    }

    /// `worded`: rows are texts, so that there are words to count.
    fn compare(&self, table: &RecordBatch, worded: bool, report: &mut Report) {
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        let expected = [
            (summary::ITEMS, Some(self.items as f64)),
            (summary::ATTACKED, Some(self.attacked as f64)),
            (summary::ACCURACY_BEFORE, share(self.before, self.items)),
            (summary::ACCURACY_AFTER, share(self.after, self.items)),
            (summary::SUCCESSES, Some(self.successes as f64)),
            (summary::SUCCESS_RATE, share(self.successes, self.tried)),
            (
                summary::MEAN_WORDS,
                share(self.words, self.successes).filter(|_| worded),
            ),
        ];
        for (column, expected) in expected {
            let array = table.column_by_name(column);
            let double = array.and_then(|array| cast(array, &DataType::Float64).ok());
            let stored = double.as_ref().filter(|a| a.len() == 1).and_then(|array| {
                let array = array.as_primitive::<Float64Type>();
                array.is_valid(0).then(|| array.value(0))
            });
            if stored != expected {
                let text = |x: Option<f64>| x.map_or("null".to_owned(), |x| x.to_string());
                report.list.push(Disagreement {
                    row: None,
                    id: "summary".to_owned(),
                    column: column.to_owned(),
                    stored: text(stored),
                    found: text(expected),
                });
            }
        }
    }
}
