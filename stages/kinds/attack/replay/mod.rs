//! Takes an attack at its word: what its table says of each row is recomputed from the row itself.
//!
//! Nothing that the attack said of itself is believed, and none of its code is used: the victim is
//! read from its weights, asked about the original and the adversarial row, and flags, changes,
//! budgets and the summary are worked out here. Decides no result, so it is in no key.

mod constraints;
mod edits;
mod legality;
mod row;
mod synonyms;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::linear::Vectors;
use nn::numeric::argmax;

use crate::kinds::attack::attacks::find;
use crate::kinds::attack::entry::Budget;
use crate::models::entry::Subject;
use crate::models::external;
use crate::models::loaded::{Loaded, probabilities};
use crate::params::settings::Settings;
use crate::tables::by_confidence::{self, CONFIDENCE};
use crate::tables::examples::{
    ADVERSARIAL, ATTACKED, Examples, ID, LABEL, OPERATIONS, ORIGINAL, P_AFTER, P_BEFORE,
    PREDICTED_AFTER, PREDICTED_BEFORE, SUCCESS, WANTED, WORDS_CHANGED,
};
use crate::tables::pairs;
use crate::tables::sequences::{self, Form, SequenceTable};
use crate::tables::summary;
use crate::tables::vectors;
use crate::{Disagreement, Failure, Outputs, Replayed, Task};
use constraints::Rules;
use legality::Legality;
use row::{Report, Row};
use synonyms::Listed;

/// How far a probability may be off on other instruction sets.
const ROUNDING: f32 = 1e-2;

/// How far that of a program of the user may be off where nothing else differs: libraries such as PyTorch round by what
/// else is in a batch, and batches are others here. A prediction that changes is a mismatch however little it takes.
const BATCHES: f32 = 1e-4;

/// Recomputes what `examples`, `by_confidence` and `summary` say. `exact`: it was computed on the same instruction sets,
/// so that probabilities of models of ours must have the same bits.
pub fn replay(task: &Task<'_>, outputs: &Outputs, exact: bool) -> Result<Replayed, Failure> {
    let table = Examples::read(&outputs["examples"])?;
    let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
    let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?.started(task)?;
    let rows = pairs::read_joined(&task.inputs["rows"])?;
    pairs::agree(rows.separator, loaded.card.separator())?;
    let settings = Settings(task.params);
    let split = settings.text("split").unwrap_or("test");
    let places: BTreeMap<&str, usize> = rows
        .split(split)
        .into_iter()
        .map(|row| (rows.ids[row].as_str(), row))
        .collect();
    let attack = settings.text("attack").and_then(find);
    let rules = attack.and_then(|attack| (attack.entry().constraints)(settings));
    let rules = rules.map(|rules| Rules::open(rules, task, &loaded, connected.as_ref()));
    let all = Replay {
        task,
        rows: &rows,
        subject: loaded.subject()?,
        places,
        split,
        budget: attack.map_or(Budget::Unlimited, |attack| {
            (attack.entry().budget)(settings)
        }),
        legality: Legality::new(task, &rows)?,
        rules: rules.transpose()?,
        listed: match attack {
            Some(attack) => Listed::new(&attack.entry(), task)?,
            None => None,
        },
        connected: connected.as_ref(),
        rounding: match (exact, loaded.card.model() == external::NAME) {
            (true, false) => None,
            (true, true) => Some(BATCHES),
            (false, _) => Some(ROUNDING),
        },
    };
    let mut report = Report::default();
    let listed = task.inputs.get("ids").map(sequences::ids).transpose()?;
    selection(
        &table,
        &all.places,
        listed.as_deref(),
        settings,
        task.seed,
        &mut report,
    );
    let wanted = settings.maybe_float(CONFIDENCE).unwrap_or_default();
    let (tally, mut asked) = all.check(&table, |_| wanted, &mut report)?;
    if by_confidence::is_made(settings) {
        asked += all.levels(&table, outputs, wanted, &mut report)?;
    }
    if report.list.is_empty() {
        let worded = !matches!(rows.form, Form::Signals { .. });
        tally.compare(&outputs["summary"], worded, &mut report);
    }
    Ok(Replayed {
        rows: table.len(),
        successes: tally.successes,
        asked,
        budget: all.budget.to_string(),
        disagreements: report.list,
    })
}

/// What tables of examples are compared with.
struct Replay<'a> {
    task: &'a Task<'a>,
    rows: &'a SequenceTable,
    subject: Subject<'a>,
    /// The rows of the split, by their ids.
    places: BTreeMap<&'a str, usize>,
    split: &'a str,
    budget: Budget,
    legality: Option<Legality>,
    rules: Option<Rules>,
    listed: Option<Listed>,
    connected: Option<&'a Vectors>,
    /// How far probabilities may be off; none if they must have the same bits.
    rounding: Option<f32>,
}

/// A row of the table, the row that it names, and what the attack left of it.
type Pair<'a> = (usize, &'a Sequence, Sequence);

impl Replay<'_> {
    /// That there is a row for each item and confidence, and that each is true.
    fn levels(
        &self,
        examples: &Examples<'_>,
        outputs: &Outputs,
        wanted: f64,
        report: &mut Report,
    ) -> Result<usize, Failure> {
        let Some(stored) = outputs.get("by_confidence") else {
            report.add(0, "", CONFIDENCE, "missing", "the output `by_confidence`");
            return Ok(0);
        };
        let table = Examples::read(stored)?;
        let lower = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9].into_iter();
        let levels: Vec<f64> = lower.filter(|c| *c < wanted).chain([wanted]).collect();
        let confidences = stored.column_by_name(CONFIDENCE);
        let confidences = confidences.and_then(|c| c.as_primitive_opt::<Float64Type>());
        for n in 0..table.len().max(examples.len() * levels.len()) {
            let item = n / levels.len();
            let expected = (item < examples.len()).then(|| examples.id(item));
            // Probabilities are 32-bit floats, and compared as such.
            let expected = expected.map(|id| (id, levels[n % levels.len()] as f32));
            let confidence = confidences.filter(|_| n < table.len()).map(|c| c.value(n));
            let found = confidence.map(|confidence| (table.id(n), confidence as f32));
            if found != expected {
                let text = |x: Option<(&str, f32)>| format!("{x:?}");
                report.add(n, "", CONFIDENCE, &text(found), &text(expected));
                return Ok(0);
            }
        }
        let of = |n: usize| confidences.map_or(wanted, |c| c.value(n));
        self.check(&table, of, report).map(|(_, asked)| asked)
    }

    /// Compares every row, which succeeds with the confidence that `least` says; gives the counts, and how many rows
    /// the model was asked about.
    fn check(
        &self,
        table: &Examples<'_>,
        least: impl Fn(usize) -> f64,
        report: &mut Report,
    ) -> Result<(Tally, usize), Failure> {
        let pairs = self.pairs(table, report)?;
        let before: Vec<&Sequence> = pairs.iter().map(|(_, original, _)| *original).collect();
        let before = probabilities(self.subject.victim(), &before)?;
        let after = pairs.iter().map(|(_, _, adversarial)| adversarial);
        let after: Vec<&Sequence> = after.collect();
        let after = probabilities(self.subject.victim(), &after)?;
        let mut tally = Tally::default();
        for (pair, (before, after)) in pairs.iter().zip(before.iter().zip(&after)) {
            let mut row = Row {
                table,
                n: pair.0,
                id: table.id(pair.0),
                report,
            };
            let least = least(pair.0);
            self.row(&mut row, pair, [before, after], least, &mut tally)?;
        }
        Ok((tally, 2 * pairs.len()))
    }

    /// The rows that can be compared. What names no row, or cannot be read, is told.
    fn pairs(&self, table: &Examples<'_>, report: &mut Report) -> Result<Vec<Pair<'_>>, Failure> {
        let repeats = Settings(self.task.params).maybe_int("repeats");
        let repeated = repeats.unwrap_or(1) > 1;
        let mut pairs = Vec::with_capacity(table.len());
        for n in 0..table.len() {
            let id = table.id(n);
            // `wave/3#7` is the eighth attack on `wave/3`.
            let named = id.rsplit_once('#').filter(|_| repeated);
            let Some(row) = self.places.get(named.map_or(id, |(row, _)| row)) else {
                let split = format!("no row of the split `{}`", self.split);
                report.add(n, id, ID, id, &split);
                continue;
            };
            let original = &self.rows.examples[*row].input;
            let label = self.rows.label(*row);
            let label = label.map_or("none".to_owned(), |l| l.to_string());
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
        Ok(pairs)
    }

    /// Compares one row.
    fn row(
        &self,
        one: &mut Row<'_>,
        (n, original, adversarial): &Pair<'_>,
        [before, after]: [&Vec<f32>; 2],
        least: f64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        one.probabilities(P_BEFORE, before, self.rounding);
        one.probabilities(P_AFTER, after, self.rounding);
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
        let sure = after.iter().copied().fold(0.0, f32::max) >= least as f32;
        let success = right && there && sure;
        let stored = one.table.flag(SUCCESS, *n)?;
        let (stored, found) = (stored.to_string(), success.to_string());
        one.report.same(*n, one.id, SUCCESS, &stored, &found);
        let form = &self.rows.form;
        let changed = match (original, adversarial) {
            _ if one.table.has(OPERATIONS) => one.edits(original, adversarial, self.task, form)?,
            (Sequence::Tokens(old), Sequence::Tokens(new)) => {
                [one.words(old, new, self.task, form)?; 2]
            }
            _ => {
                // Numbers are not words, and none are changed.
                one.number(WORDS_CHANGED, 0)?;
                [0, 0]
            }
        };
        if !attacked && *original != adversarial {
            one.report
                .add(*n, one.id, ATTACKED, "false", "the row was changed");
        }
        let pad = form.special().unwrap_or_default()[0];
        one.budget(&self.budget, changed, pad, original, adversarial);
        let settings = Settings(self.task.params);
        if let Some(most) = settings.maybe_int("max_queries").filter(|most| *most > 0) {
            one.queries(most);
        }
        if let Some(legality) = &self.legality {
            legality.check(one, original, &self.budget, settings);
        }
        if let (Budget::Similarity(cosine), Some(vectors)) = (&self.budget, self.connected) {
            one.likeness(*cosine, &self.budget, vectors, original, adversarial);
        }
        if let Some(rules) = &self.rules {
            rules.check(one, pad, original, adversarial);
        }
        if let Some(listed) = &self.listed {
            listed.check(one, original, adversarial);
        }
        tally.count(right, said[1] == label, success, attacked, changed[0]);
        Ok(())
    }
}

/// Whether these are the rows that were to be attacked, each once: leaving failures out, or
/// listing a success twice, would change the summary and no row.
fn selection(
    table: &Examples<'_>,
    places: &BTreeMap<&str, usize>,
    listed: Option<&[String]>,
    settings: Settings<'_>,
    seed: u64,
    report: &mut Report,
) {
    if let Some(listed) = listed {
        for n in 0..table.len() {
            let id = table.id(n);
            let row = id.rsplit_once('#').map_or(id, |(row, _)| row);
            if !listed.iter().any(|known| known == row || known == id) {
                report.add(n, id, ID, "not in the input `ids`", "one of its rows");
            }
        }
    }
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
    let may = |id: &&&str| listed.is_none_or(|listed| listed.iter().any(|known| known == **id));
    let mut drawn: Vec<(String, &str)> = places
        .keys()
        .filter(may)
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
