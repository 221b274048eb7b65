//! Adversarial examples for a page: what the model read before and after, which words differ,
//! and its predictions. Texts share one dictionary; signals and pictures are drawn.

use std::collections::HashMap;

use arrow::record_batch::RecordBatch;
use serde::Serialize;
use stages::tables::examples as example_columns;
use store::{Params, Store};

use super::character_edits::{CharacterEdits, Pieces};
use super::outcome::AttackOutcome;
use super::reading::{Reading, channels};
use super::signals::{ALL, Drawing, drawn};
use crate::results::columns;
use crate::results::recorded::{self, Recorded, Step, is_control};

/// All examples of a run.
#[derive(Default, Serialize)]
pub struct Examples {
    /// Every word that occurs; rows name them by position.
    pub words: Vec<String>,
    /// A table for each attack.
    pub tables: Vec<Table>,
    /// Drawings of signals, by table and row.
    #[serde(skip)]
    pub drawings: Vec<Drawing>,
}

/// The examples of one attack.
#[derive(Serialize)]
pub struct Table {
    /// The step that made them.
    pub step: usize,
    /// Its label.
    pub name: String,
    /// How many there are.
    pub total: usize,
    /// Names of the classes by number, as far as they are known.
    pub classes: Vec<String>,
    /// What stands between words.
    pub joiner: &'static str,
    /// How attacks can end, in words; rows name them by position.
    pub outcomes: Vec<String>,
    /// Evenly sampled rows, if not all fit.
    pub rows: Vec<Row>,
}

/// One example. As a list in JSON, because there are ten thousand.
#[derive(Serialize)]
pub struct Row(
    /// The row's id.
    pub String,
    /// The true class, and the predictions before and after.
    pub [Option<i64>; 3],
    /// Whether the attack succeeded.
    pub bool,
    /// Whether the attack tried.
    pub bool,
    /// How many words it changed.
    pub i64,
    /// Words before.
    pub Vec<u32>,
    /// What changed: from position, words taken away, words put in.
    pub Vec<(usize, usize, Vec<u32>)>,
    /// Probabilities before.
    pub Vec<f64>,
    /// Probabilities after.
    pub Vec<f64>,
    /// For edits of characters: each changed word in pieces, before and after, in the order of the changes.
    pub Vec<[Pieces; 2]>,
    /// For edits of characters: the word that each was made in, before and after it, in the order of the edits.
    pub Vec<[String; 2]>,
    /// How the attack on it ended.
    pub AttackOutcome,
);

/// Collects the examples of a run, at most `most` in all.
pub fn collect(store: &Store, recorded: &Recorded, most: usize) -> Examples {
    let mut found = Examples::default();
    let mut collector = Collector::new(store, recorded);
    let steps: Vec<(usize, &Step)> = recorded
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| is_attack(step))
        .collect();
    let totals = steps.iter().map(|(_, step)| {
        step.output(example_columns::SCHEMA.name)
            .map_or(0, |output| output.rows as usize)
    });
    let shares = shares(&totals.collect::<Vec<_>>(), most);
    for ((at, _), share) in steps.into_iter().zip(shares) {
        collector.add(&mut found, at, share);
    }
    found
}

/// All examples of one step, if it has any.
pub fn of_step(store: &Store, recorded: &Recorded, at: usize) -> Option<Examples> {
    let mut found = Examples::default();
    Collector::new(store, recorded).add(&mut found, at, usize::MAX);
    (!found.tables.is_empty()).then_some(found)
}

/// What is shared by the tables of a page.
struct Collector<'a> {
    store: &'a Store,
    recorded: &'a Recorded,
    reading: Reading,
    places: HashMap<String, u32>,
}

impl<'a> Collector<'a> {
    fn new(store: &'a Store, recorded: &'a Recorded) -> Collector<'a> {
        Collector {
            store,
            recorded,
            reading: Reading::default(),
            places: HashMap::new(),
        }
    }

    fn add(&mut self, found: &mut Examples, at: usize, share: usize) {
        let (store, recorded) = (self.store, self.recorded);
        let step = &recorded.steps[at];
        let table = step
            .output(example_columns::SCHEMA.name)
            .and_then(|output| recorded::table(store, output));
        let Some(table) = table else {
            return;
        };
        let count = table.num_rows().min(share);
        let rows: Vec<usize> = (0..count).map(|n| n * table.num_rows() / count).collect();
        let none = Params::new();
        let params = step
            .execution
            .as_ref()
            .map_or(&none, |made| &made.key.params);
        let mut made = Table {
            step: at,
            name: step.label.clone(),
            total: table.num_rows(),
            classes: self.reading.classes(store, recorded, at),
            joiner: " ",
            outcomes: AttackOutcome::ALL
                .map(|outcome| outcome.text(params))
                .into(),
            rows: Vec::new(),
        };
        if columns::is_signal(&table, example_columns::ORIGINAL) {
            let channels = channels(store, recorded, step);
            let number = found.tables.len();
            let left = ALL.saturating_sub(found.drawings.len());
            let drawings = drawn(number, &table, &rows, channels, left);
            found.drawings.extend(drawings);
            made.rows = read(&table, &rows, |_| Words::default()).unwrap_or_default();
        } else if let Some(tokens) = Texts::of(&table) {
            let scheme = self.reading.scheme(store, recorded, at);
            made.joiner = scheme.joiner;
            let edits = CharacterEdits::of(&table);
            let words = |row: usize| {
                let spelt = || scheme.spelt(tokens.rows(row)[0]);
                let edited = edits.as_ref().zip(spelt());
                let edited = edited.and_then(|(edits, words)| edits.made(row, &words));
                let [before, after] = tokens.rows(row).map(|ids| {
                    let words = scheme.words(ids).into_iter();
                    let number = words.map(|word| number(&mut found.words, &mut self.places, word));
                    number.collect::<Vec<u32>>()
                });
                let changed = changes(&before, &after);
                let mut edited = edited.unwrap_or_default();
                let pieces = changed.iter().map(|(at, ..)| edited.words.remove(at));
                Words {
                    // Edits that lead elsewhere are not shown: the words are, as a whole.
                    pieces: pieces.collect::<Option<_>>().unwrap_or_default(),
                    steps: edited.steps,
                    before,
                    changed,
                }
            };
            made.rows = read(&table, &rows, words).unwrap_or_default();
        }
        if !made.rows.is_empty() {
            found.tables.push(made);
        }
    }
}

/// How many rows of each table there is room for: all, or as many as make those that are
/// cut short equally long.
fn shares(totals: &[usize], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|at| totals[*at]);
    let mut shares = vec![0; totals.len()];
    let mut left = most;
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = totals[at].min(left / (totals.len() - done));
        left -= shares[at];
    }
    shares
}

/// A control leaves every row as it is: there is nothing to see.
fn is_attack(step: &Step) -> bool {
    let made = step.execution.as_ref();
    made.is_some_and(|made| {
        step.output(example_columns::SCHEMA.name).is_some() && !is_control(&made.key)
    })
}

fn number(words: &mut Vec<String>, places: &mut HashMap<String, u32>, word: String) -> u32 {
    *places.entry(word).or_insert_with_key(|word| {
        words.push(word.clone());
        u32::try_from(words.len() - 1).expect("fewer than 2^32 words")
    })
}

/// The words of a row, and what became of them.
#[derive(Default)]
struct Words {
    before: Vec<u32>,
    changed: Vec<(usize, usize, Vec<u32>)>,
    pieces: Vec<[Pieces; 2]>,
    steps: Vec<[String; 2]>,
}

/// The columns of some rows. Only `success` is needed; a table of somebody's own may lack others.
fn read(
    table: &RecordBatch,
    rows: &[usize],
    mut words: impl FnMut(usize) -> Words,
) -> Option<Vec<Row>> {
    let success = columns::flags(table, example_columns::SUCCESS)?;
    let attacked = columns::flags(table, example_columns::ATTACKED);
    let ids = columns::texts(table, example_columns::ID);
    let classes = [
        example_columns::LABEL,
        example_columns::PREDICTED_BEFORE,
        example_columns::PREDICTED_AFTER,
    ];
    let classes = classes.map(|name| columns::wholes(table, name));
    let counts = columns::wholes(table, example_columns::WORDS_CHANGED);
    let sides = [example_columns::P_BEFORE, example_columns::P_AFTER]
        .map(|name| columns::lists(table, name));
    let row = |row: &usize| {
        let row = *row;
        let words = words(row);
        let class = |n: usize| classes[n].as_ref().and_then(|class| class[row]);
        let likely = |n: usize| -> Vec<f64> {
            let list = sides[n].as_ref().map_or(&[][..], |side| &side[row]);
            list.iter().map(|p| (p * 1e4).round() / 1e4).collect()
        };
        let classes = [class(0), class(1), class(2)];
        let attacked = attacked.as_ref().is_none_or(|attacked| attacked[row]);
        Row(
            ids.as_ref()
                .map_or_else(|| row.to_string(), |ids| ids[row].clone()),
            classes,
            success[row],
            attacked,
            counts
                .as_ref()
                .and_then(|counts| counts[row])
                .unwrap_or(words.changed.len() as i64),
            words.before,
            words.changed,
            likely(0),
            likely(1),
            words.pieces,
            words.steps,
            AttackOutcome::of(classes, success[row], attacked),
        )
    };
    Some(rows.iter().map(row).collect())
}

/// Token ids before and after.
struct Texts {
    sides: [Vec<Vec<f64>>; 2],
}

impl Texts {
    fn of(table: &RecordBatch) -> Option<Texts> {
        let [before, after] = [example_columns::ORIGINAL, example_columns::ADVERSARIAL]
            .map(|name| columns::lists(table, name));
        Some(Texts {
            sides: [before?, after?],
        })
    }

    fn rows(&self, row: usize) -> [&[f64]; 2] {
        [&self.sides[0][row], &self.sides[1][row]]
    }
}

/// What it takes to get from one list of words to the other: place by place if they are equally
/// long, otherwise all between what they begin and end with alike.
fn changes(before: &[u32], after: &[u32]) -> Vec<(usize, usize, Vec<u32>)> {
    if before.len() == after.len() {
        let both = before.iter().zip(after).enumerate();
        let differ = both.filter(|(_, (old, new))| old != new);
        return differ.map(|(at, (_, new))| (at, 1, vec![*new])).collect();
    }
    let same = |pair: &(&u32, &u32)| pair.0 == pair.1;
    let head = before.iter().zip(after).take_while(same).count();
    let rest = before.len().min(after.len()) - head;
    let tail = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let put = after[head..after.len() - tail].to_vec();
    vec![(head, before.len() - tail - head, put)]
}

#[cfg(test)]
mod tests {
    use super::{changes, shares};

    #[test]
    fn room_is_shared_and_none_is_left_over() {
        assert_eq!(shares(&[1000, 300, 1000], 10_000), [1000, 300, 1000]);
        assert_eq!(shares(&[1000, 300, 1000], 1301), [500, 300, 501]);
        assert_eq!(shares(&[], 10), Vec::<usize>::new());
        assert_eq!(shares(&[5, 5], 0), [0, 0]);
    }

    #[test]
    fn changes_are_found_place_by_place_or_in_the_middle() {
        assert_eq!(changes(&[1, 2, 3], &[1, 9, 3]), [(1, 1, vec![9])]);
        assert_eq!(changes(&[1, 2, 3], &[1, 2, 3]), []);
        assert_eq!(changes(&[1, 2, 3], &[1, 7, 8, 3]), [(1, 1, vec![7, 8])]);
        assert_eq!(changes(&[1, 2], &[1, 2, 5]), [(2, 0, vec![5])]);
        assert_eq!(changes(&[1, 1], &[1]), [(1, 1, vec![])]);
    }
}
