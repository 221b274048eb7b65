//! Whether the character edits of a row were allowed: no word that the vocabulary has, no slot twice, no word of one
//! character deleted, nothing but visible characters put in, and a budget of slots kept.
//!
//! Works on texts where the attack works on ids, and shares none of its code.

use std::collections::BTreeSet;

use arrow::array::AsArray;
use nn::batch::Sequence;

use super::row::Row;
use crate::kinds::attack::entry::Budget;
use crate::kinds::attack::known_words::PORT;
use crate::params::settings::Settings;
use crate::tables::examples::{NEW, OPERATIONS, POSITIONS, SLOTS};
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::vocabulary;
use crate::{Failure, Task};

/// What stands for a character that the grid does not have.
const UNKNOWN: &str = "\u{0}";

/// What is known of words and characters.
pub struct Legality {
    words: BTreeSet<String>,
    letters: Vec<String>,
    width: usize,
    pad: u32,
}

/// One character of a word, and whether its slot was edited.
type Slot = (String, bool);

impl Legality {
    /// From the inputs of an attack on characters; none for other attacks.
    pub fn new(task: &Task<'_>, rows: &SequenceTable) -> Result<Option<Legality>, Failure> {
        let (Some(table), Some(vocab)) = (task.inputs.get(PORT), task.inputs.get("vocab")) else {
            return Ok(None);
        };
        let Form::Chars {
            width,
            pad,
            unknown,
            ..
        } = rows.form
        else {
            return Ok(None);
        };
        let letters = vocab.column_by_name(vocabulary::TOKEN);
        let letters = letters.and_then(|c| c.as_string_opt::<i32>());
        let letters = letters.into_iter().flatten().enumerate();
        let letters: Vec<String> = letters
            .map(|(id, text)| match id == unknown as usize {
                true => UNKNOWN.to_owned(),
                false => text.unwrap_or_default().to_owned(),
            })
            .collect();
        let known: BTreeSet<&str> = letters.iter().map(String::as_str).collect();
        let spelt = |word: &str| {
            let letters = word.chars().take(width - 1).map(|c| c.to_string());
            let letter = |text: String| match known.contains(text.as_str()) {
                true => text,
                false => UNKNOWN.to_owned(),
            };
            letters.map(letter).collect()
        };
        let words = vocabulary::words(table, PORT)?;
        let words = words.iter().flatten().map(spelt).collect();
        Ok(Some(Legality {
            words,
            letters,
            width,
            pad,
        }))
    }

    /// Makes the edits of a row again, and tells the first that was not allowed.
    pub fn check(
        &self,
        row: &mut Row<'_>,
        original: &Sequence,
        budget: &Budget,
        settings: Settings<'_>,
    ) {
        let Sequence::Chars { ids, .. } = original else {
            return;
        };
        let mut words: Vec<Vec<Slot>> = ids.chunks(self.width).map(|w| self.word(w)).collect();
        let characters: usize = words.iter().map(Vec::len).sum();
        let table = row.table;
        let positions = table.ints(POSITIONS, row.n).unwrap_or_default();
        let slots = table.ints(SLOTS, row.n).unwrap_or_default();
        let (operations, new) = (table.texts(OPERATIONS, row.n), table.texts(NEW, row.n));
        let keeps_pad = matches!(
            settings.0.get("keep_last_pad"),
            Some(store::Value::Bool(true))
        );
        let room = self.width - usize::from(keeps_pad);
        let mut changed = 0;
        for (k, operation) in operations.iter().enumerate() {
            let at = |list: &[i32]| list.get(k).and_then(|n| usize::try_from(*n).ok());
            let word = at(&positions).and_then(|n| words.get_mut(n));
            let letter = new.get(k).map_or("", String::as_str);
            // An edit that does not fit its row is told elsewhere.
            let (Some(word), Some(slot)) = (word, at(&slots)) else {
                return;
            };
            match self.make(word, operation, slot, letter, room) {
                Ok(slots) => changed += slots,
                Err(rule) => {
                    let text: String = word.iter().map(|(letter, _)| letter.as_str()).collect();
                    let stored = format!("{operation} `{letter}` at slot {slot} of `{text}`");
                    row.report.add(row.n, row.id, OPERATIONS, &stored, rule);
                    return;
                }
            }
        }
        if let Budget::SlotShare(share) = budget
            && changed > ((characters as f64 * share) as usize).max(1)
        {
            let found = format!("{changed} slots changed");
            let stored = budget.to_string();
            row.report.add(row.n, row.id, "budget", &stored, &found);
        }
    }

    fn word(&self, ids: &[u32]) -> Vec<Slot> {
        let written = ids.iter().filter(|id| **id != self.pad);
        let letter = |id: &u32| self.letters.get(*id as usize).cloned().unwrap_or_default();
        written.map(|id| (letter(id), false)).collect()
    }

    /// Makes one edit: how many slots it changes, or the rule that it breaks.
    fn make(
        &self,
        word: &mut Vec<Slot>,
        operation: &str,
        slot: usize,
        letter: &str,
        room: usize,
    ) -> Result<usize, &'static str> {
        let before: Vec<String> = word.iter().map(|(letter, _)| letter.clone()).collect();
        if word.get(slot).is_some_and(|(_, edited)| *edited) {
            return Err("no slot is edited twice");
        }
        let visible = !letter.is_empty() && letter != UNKNOWN && !letter.trim().is_empty();
        if operation != "delete" && !(visible && self.letters.iter().any(|l| l == letter)) {
            return Err("only characters of the grid are put in");
        }
        match operation {
            "replace" if slot < word.len() => word[slot] = (letter.to_owned(), true),
            "insert" if word.len() >= room => return Err("the word has no room"),
            "insert" if slot <= word.len() => word.insert(slot, (letter.to_owned(), true)),
            "delete" if word.len() < 2 => return Err("words of one character are not deleted"),
            "delete" if slot < word.len() => {
                word.remove(slot);
                // What moves into the slot stands in an edited one.
                if let Some((_, edited)) = word.get_mut(slot) {
                    *edited = true;
                }
            }
            _ => return Err("an edit of a character of the word"),
        }
        let after: Vec<String> = word.iter().map(|(letter, _)| letter.clone()).collect();
        if self.words.contains(&after.concat()) {
            return Err("no word of the vocabulary is made");
        }
        let slots = before.len().max(after.len());
        Ok((0..slots)
            .filter(|n| before.get(*n) != after.get(*n))
            .count())
    }
}
