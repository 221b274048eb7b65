//! One row of an attack's table beside what comes out, and the list of what differs.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::linear::Vectors;

use super::edits::{Symbols, edited};
use crate::kinds::attack::entry::Budget;
use crate::tables::examples::{ADVERSARIAL, Examples, NEW, OLD, POSITIONS, QUERIES, WORDS_CHANGED};
use crate::tables::sequences::Form;
use crate::tables::vocabulary;
use crate::{Disagreement, Failure, Task};

/// What differs.
#[derive(Default)]
pub struct Report {
    pub list: Vec<Disagreement>,
}

impl Report {
    pub fn add(&mut self, row: usize, id: &str, column: &str, stored: &str, found: &str) {
        self.list.push(Disagreement {
            row: Some(row),
            id: id.to_owned(),
            column: column.to_owned(),
            stored: stored.to_owned(),
            found: found.to_owned(),
        });
    }

    pub fn same(&mut self, row: usize, id: &str, column: &str, stored: &str, found: &str) {
        if stored != found {
            self.add(row, id, column, stored, found);
        }
    }
}

/// One row of the table while it is looked at.
pub struct Row<'a> {
    pub table: &'a Examples<'a>,
    pub n: usize,
    pub id: &'a str,
    pub report: &'a mut Report,
}

impl Row<'_> {
    pub fn number(&mut self, column: &str, found: i64) -> Result<(), Failure> {
        let stored = self.table.int(column, self.n)?.to_string();
        self.report
            .same(self.n, self.id, column, &stored, &found.to_string());
        Ok(())
    }

    pub fn probabilities(&mut self, column: &str, found: &[f32], rounding: Option<f32>) {
        let stored = self.table.floats(column, self.n).unwrap_or_default();
        let near = |(a, b): (&f32, &f32)| match rounding {
            None => a.to_bits() == b.to_bits(),
            Some(most) => (a - b).abs() <= most,
        };
        if stored.len() != found.len() || !stored.iter().zip(found).all(near) {
            let (stored, found) = (format!("{stored:?}"), format!("{found:?}"));
            self.report.add(self.n, self.id, column, &stored, &found);
        }
    }

    /// That the listed changes, and no others, lead from the original to the adversarial row.
    /// How many words they are.
    pub fn words(
        &mut self,
        old: &[u32],
        new: &[u32],
        task: &Task<'_>,
        form: &Form,
    ) -> Result<usize, Failure> {
        let positions = self.table.ints(POSITIONS, self.n).unwrap_or_default();
        let (was, now) = (self.table.texts(OLD, self.n), self.table.texts(NEW, self.n));
        let mut text = old.to_vec();
        let mut seen = BTreeSet::new();
        let name = |token: u32| match task.inputs.get("vocab") {
            Some(vocab) => word(vocab, token),
            None => Some(token.to_string()),
        };
        let listed = positions.len() == was.len() && positions.len() == now.len();
        for (k, position) in positions.iter().enumerate().filter(|_| listed) {
            let at = usize::try_from(*position)
                .ok()
                .filter(|at| *at < old.len() && *at < new.len());
            let Some(at) = at.filter(|at| seen.insert(*at)) else {
                let wrong = "distinct positions of the text";
                self.report
                    .add(self.n, self.id, POSITIONS, &position.to_string(), wrong);
                continue;
            };
            text[at] = new[at];
            for (column, stored, token) in [(OLD, &was[k], old[at]), (NEW, &now[k], new[at])] {
                let found = name(token).unwrap_or_default();
                self.report.same(self.n, self.id, column, stored, &found);
            }
            let special = match form {
                Form::Tokens { pad, unknown, .. } => new[at] == *pad || new[at] == *unknown,
                _ => false,
            };
            if special && new[at] != old[at] {
                let rule = "padding and the unknown token are never inserted";
                self.report
                    .add(self.n, self.id, ADVERSARIAL, &new[at].to_string(), rule);
            }
        }
        if !listed || text != new {
            let wrong = "edits that turn the original into it";
            self.report
                .add(self.n, self.id, ADVERSARIAL, "a text", wrong);
        }
        self.number(WORDS_CHANGED, positions.len() as i64)?;
        Ok(positions.len())
    }

    /// The same for edits that are more than replaced words: how many words they change, and how many they are.
    pub fn edits(
        &mut self,
        old: &Sequence,
        new: &Sequence,
        task: &Task<'_>,
        form: &Form,
    ) -> Result<[usize; 2], Failure> {
        let vocab = task.inputs.get("vocab");
        let name = |id: u32| match vocab {
            Some(vocab) => word(vocab, id),
            None => Some(id.to_string()),
        };
        let id = |text: &str| match vocab {
            Some(vocab) => {
                let words = vocab
                    .column_by_name(vocabulary::TOKEN)?
                    .as_string_opt::<i32>()?;
                let at = words.iter().position(|word| word == Some(text))?;
                u32::try_from(at).ok()
            }
            None => text.parse().ok(),
        };
        let special = form.special().unwrap_or_default();
        let symbols = Symbols {
            name: &name,
            id: &id,
            pad: special[0],
        };
        match edited(self.table, self.n, old, &symbols) {
            Ok(edited) => {
                if edited.row != *new {
                    let wrong = "edits that turn the original into it";
                    self.report
                        .add(self.n, self.id, ADVERSARIAL, "a text", wrong);
                }
                if let Some(id) = edited.put_in.iter().find(|id| special.contains(id)) {
                    let rule = "padding and the unknown token are never inserted";
                    self.report
                        .add(self.n, self.id, ADVERSARIAL, &id.to_string(), rule);
                }
                self.number(WORDS_CHANGED, edited.words as i64)?;
                Ok([edited.words, edited.edits])
            }
            Err(edit) => {
                let wrong = "an edit of what is there";
                self.report.add(self.n, self.id, POSITIONS, &edit, wrong);
                Ok([0, 0])
            }
        }
    }

    pub fn budget(
        &mut self,
        budget: &Budget,
        [words, edits]: [usize; 2],
        pad: u32,
        old: &Sequence,
        new: &Sequence,
    ) {
        let over = match (budget, old, new) {
            (Budget::Nothing, ..) => old != new,
            (Budget::Words(most), ..) => words > *most,
            (
                Budget::Text {
                    words: most,
                    characters,
                },
                ..,
            ) => {
                most.is_some_and(|most| words > most)
                    || characters.is_some_and(|most| self.characters() > most)
            }
            (Budget::WordShare(share), Sequence::Tokens(ids), _) => {
                let written = ids.iter().filter(|id| **id != pad).count();
                words > ((written as f64 * share) as usize).max(1)
            }
            (Budget::Characters(most), ..) => edits > *most,
            (Budget::CharacterShare(share), Sequence::Chars { ids, .. }, _) => {
                let characters = ids.iter().filter(|id| **id != pad).count();
                edits > ((characters as f64 * share) as usize).max(1)
            }
            (Budget::Linf(most), Sequence::Vectors(a), Sequence::Vectors(b)) => {
                // The bound is kept in the numbers that are stored: 32-bit floats.
                a.iter()
                    .zip(b)
                    .any(|(a, b)| f64::from((b - a).abs()) > *most * (1.0 + 1e-6))
            }
            _ => false,
        };
        if over {
            let found = match budget {
                Budget::Characters(_) | Budget::CharacterShare(_) => {
                    format!("{edits} characters changed")
                }
                Budget::Text { .. } => {
                    let characters = self.characters();
                    format!("{words} words and {characters} characters changed")
                }
                _ => format!("{words} words changed"),
            };
            self.report
                .add(self.n, self.id, "budget", &budget.to_string(), &found);
        }
    }
}

impl Row<'_> {
    /// How many characters the listed edits of words change.
    fn characters(&self) -> usize {
        let (old, new) = (self.table.texts(OLD, self.n), self.table.texts(NEW, self.n));
        let pairs = old.iter().zip(&new);
        pairs.map(|(old, new)| letters_between(old, new)).sum()
    }

    /// That the model was not asked more often than was allowed.
    pub fn queries(&mut self, most: usize) {
        let asked = self.table.maybe_int(QUERIES, self.n).unwrap_or_default();
        if asked > most as i64 {
            let (stored, rule) = (asked.to_string(), format!("at most {most}"));
            self.report.add(self.n, self.id, QUERIES, &stored, &rule);
        }
    }

    /// That every word was changed to one like it. The first that was not is told.
    pub fn likeness(
        &mut self,
        least: f64,
        budget: &Budget,
        vectors: &Vectors,
        old: &Sequence,
        new: &Sequence,
    ) {
        let (Sequence::Tokens(old), Sequence::Tokens(new)) = (old, new) else {
            return;
        };
        let vector = |token: &u32| {
            let at = *token as usize * vectors.dim;
            vectors.data.get(at..at + vectors.dim).unwrap_or_default()
        };
        let changed = old.iter().zip(new).filter(|(old, new)| old != new);
        let cosines = changed.map(|(old, new)| cosine(vector(old), vector(new)));
        // The attack sums in 32 bits.
        if let Some(found) = cosines.into_iter().find(|found| *found <= least - 1e-5) {
            let found = format!("a word with a cosine of {found:.6}");
            self.report
                .add(self.n, self.id, "budget", &budget.to_string(), &found);
        }
    }
}

/// The fewest characters that are replaced, inserted or deleted between two words.
fn letters_between(old: &str, new: &str) -> usize {
    let new: Vec<char> = new.chars().collect();
    // From the word so far to each beginning of the new one.
    let mut costs: Vec<usize> = (0..=new.len()).collect();
    for letter in old.chars() {
        let mut diagonal = costs[0];
        costs[0] += 1;
        for (j, other) in new.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = costs[j + 1];
            costs[j + 1] = replaced.min(diagonal + 1).min(costs[j] + 1);
        }
    }
    costs[new.len()]
}

/// The cosine of two vectors; 0 if one of them has no direction.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 {
        dot(a, b) / lengths
    } else {
        0.0
    }
}

fn word(vocab: &RecordBatch, token: u32) -> Option<String> {
    let words = vocab
        .column_by_name(vocabulary::TOKEN)?
        .as_string_opt::<i32>()?;
    let at = token as usize;
    (at < words.len() && words.is_valid(at)).then(|| words.value(at).to_owned())
}
