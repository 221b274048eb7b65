//! What became of the characters of words: which were flipped, inserted and deleted, and in which order, from the
//! edits that an attack listed. Knows nothing of pages.

use std::collections::BTreeMap;

use arrow::array::{AsArray, ListArray};
use arrow::record_batch::RecordBatch;
use serde::Serialize;
use stages::tables::examples::{NEW, OPERATIONS, POSITIONS, SLOTS};

use crate::results::columns;

/// What became of some characters. As a number in JSON, because there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "u8")]
pub enum Mark {
    Same,
    /// Another took its place, or it took that of another.
    Flipped,
    /// Only on one side: deleted, or inserted.
    Alone,
}

impl From<Mark> for u8 {
    fn from(mark: Mark) -> u8 {
        mark as u8
    }
}

/// A word in pieces.
pub type Pieces = Vec<(Mark, String)>;

/// The changed words of one row, by their places, and the edits in their order.
#[derive(Debug, Default, PartialEq)]
pub struct Edited {
    /// Each word before and after.
    pub words: BTreeMap<usize, [Pieces; 2]>,
    /// The word that each edit was made in, before and after it.
    pub steps: Vec<[String; 2]>,
}

/// The edits of a table of examples.
pub struct CharacterEdits<'a> {
    positions: Vec<Vec<f64>>,
    slots: Vec<Vec<f64>>,
    operations: &'a ListArray,
    new: &'a ListArray,
}

impl<'a> CharacterEdits<'a> {
    /// Of a table that has edits of characters.
    pub fn of(table: &'a RecordBatch) -> Option<CharacterEdits<'a>> {
        let list = |name: &str| table.column_by_name(name)?.as_list_opt::<i32>();
        Some(CharacterEdits {
            positions: columns::lists(table, POSITIONS)?,
            slots: columns::lists(table, SLOTS)?,
            operations: list(OPERATIONS)?,
            new: list(NEW)?,
        })
    }

    /// What the edits of a row make of its words, each a list of characters. None if they do not fit.
    pub fn made(&self, row: usize, words: &[Vec<String>]) -> Option<Edited> {
        let texts = |list: &ListArray| -> Option<Vec<String>> {
            let list = list.value(row);
            let list = list.as_string_opt::<i32>()?;
            Some(
                list.iter()
                    .map(|text| text.unwrap_or_default().to_owned())
                    .collect(),
            )
        };
        let (operations, new) = (texts(self.operations)?, texts(self.new)?);
        let (positions, slots) = (&self.positions[row], &self.slots[row]);
        let mut changed: BTreeMap<usize, Word> = BTreeMap::new();
        let mut steps = Vec::with_capacity(operations.len());
        for (k, operation) in operations.iter().enumerate() {
            let position = *positions.get(k)? as usize;
            let original = words.get(position)?;
            let word = changed
                .entry(position)
                .or_insert_with(|| Word::new(original));
            let before = word.text();
            word.edit(operation, *slots.get(k)? as usize, new.get(k)?)?;
            steps.push([before, word.text()]);
        }
        let words = changed.into_iter();
        Some(Edited {
            words: words.map(|(place, word)| (place, word.pieces())).collect(),
            steps,
        })
    }
}

/// A word while it is edited.
struct Word {
    before: Vec<(Mark, String)>,
    /// Characters with the place that each had before, if it had one.
    now: Vec<(Mark, String, Option<usize>)>,
}

impl Word {
    fn new(characters: &[String]) -> Word {
        let now = characters.iter().enumerate();
        Word {
            before: characters.iter().map(|c| (Mark::Same, c.clone())).collect(),
            now: now.map(|(n, c)| (Mark::Same, c.clone(), Some(n))).collect(),
        }
    }

    fn edit(&mut self, operation: &str, slot: usize, new: &str) -> Option<()> {
        match operation {
            "replace" if slot < self.now.len() => {
                let (mark, text, origin) = &mut self.now[slot];
                *text = new.to_owned();
                if let Some(origin) = origin {
                    *mark = Mark::Flipped;
                    self.before[*origin].0 = Mark::Flipped;
                }
            }
            // What takes the place of padding is behind the word.
            "replace" | "insert" if slot <= self.now.len() => {
                self.now.insert(slot, (Mark::Alone, new.to_owned(), None));
            }
            "delete" if slot < self.now.len() => {
                let (_, _, origin) = self.now.remove(slot);
                if let Some(origin) = origin {
                    self.before[origin].0 = Mark::Alone;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn text(&self) -> String {
        self.now.iter().map(|(_, text, _)| text.as_str()).collect()
    }

    fn pieces(self) -> [Pieces; 2] {
        let now = self.now.into_iter().map(|(mark, text, _)| (mark, text));
        [joined(self.before), joined(now.collect())]
    }
}

/// Neighbours with the same mark are one piece.
fn joined(characters: Vec<(Mark, String)>) -> Pieces {
    let mut pieces: Pieces = Vec::new();
    for (mark, text) in characters {
        match pieces.last_mut() {
            Some((last, piece)) if *last == mark => piece.push_str(&text),
            _ => pieces.push((mark, text)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(word: &str, edits: &[(&str, usize, &str)]) -> Option<[Pieces; 2]> {
        let characters: Vec<String> = word.chars().map(String::from).collect();
        let mut word = Word::new(&characters);
        for (operation, slot, new) in edits {
            word.edit(operation, *slot, new)?;
        }
        Some(word.pieces())
    }

    fn pieces(all: &[(Mark, &str)]) -> Pieces {
        all.iter()
            .map(|(mark, text)| (*mark, (*text).to_owned()))
            .collect()
    }

    use Mark::{Alone, Flipped, Same};

    #[test]
    fn each_kind_of_edit_has_its_mark() {
        let [before, after] = edited("mood", &[("replace", 3, "P")]).unwrap();
        assert_eq!(before, pieces(&[(Same, "moo"), (Flipped, "d")]));
        assert_eq!(after, pieces(&[(Same, "moo"), (Flipped, "P")]));
        let [before, after] = edited("past", &[("insert", 3, "!")]).unwrap();
        assert_eq!(before, pieces(&[(Same, "past")]));
        assert_eq!(after, pieces(&[(Same, "pas"), (Alone, "!"), (Same, "t")]));
        let [before, after] = edited("actor", &[("delete", 3, "")]).unwrap();
        assert_eq!(before, pieces(&[(Same, "act"), (Alone, "o"), (Same, "r")]));
        assert_eq!(after, pieces(&[(Same, "actr")]));
        let [_, after] = edited("ab", &[("replace", 2, "c")]).unwrap();
        assert_eq!(after, pieces(&[(Same, "ab"), (Alone, "c")]));
    }

    #[test]
    fn places_are_those_at_the_time_of_the_edit() {
        let edits = [("delete", 0, ""), ("replace", 0, "x"), ("insert", 1, "y")];
        let [before, after] = edited("abc", &edits).unwrap();
        assert_eq!(before, pieces(&[(Alone, "a"), (Flipped, "b"), (Same, "c")]));
        assert_eq!(after, pieces(&[(Flipped, "x"), (Alone, "y"), (Same, "c")]));
        assert_eq!(edited("ab", &[("delete", 2, "")]), None);
        assert_eq!(edited("ab", &[("swap", 0, "b")]), None);
    }
}
