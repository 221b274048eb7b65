//! That words were replaced by synonyms of theirs, for attacks that may put in nothing else.

use std::collections::BTreeMap;

use arrow::array::{Array, StringArray};
use nn::batch::Sequence;

use super::row::Row;
use crate::kinds::attack::entry::AttackEntry;
use crate::params::settings::Settings;
use crate::tables::synonyms::Synonyms;
use crate::tables::vocabulary;
use crate::{Failure, Task};

const PORT: &str = "synonyms";

/// Which words may stand for which.
pub struct Listed {
    words: StringArray,
    of: BTreeMap<u32, Vec<u32>>,
    /// How many of a word's synonyms may be tried.
    most: usize,
}

impl Listed {
    /// From the inputs of the stage; none for an attack that does not need synonyms.
    pub fn new(entry: &AttackEntry, task: &Task<'_>) -> Result<Option<Listed>, Failure> {
        let settings = Settings(task.params);
        let tables = (task.inputs.get(PORT), task.inputs.get("vocab"));
        let (Some(table), Some(vocab)) = tables else {
            return Ok(None);
        };
        if !entry.needed(settings).contains(&PORT) {
            return Ok(None);
        }
        let words = vocabulary::words(vocab, "vocab")?;
        let most = settings.maybe_int("max_candidates");
        Ok(Some(Listed {
            of: Synonyms::read(table, PORT)?.by_id(&words),
            words,
            most: most.filter(|most| *most > 0).unwrap_or(usize::MAX),
        }))
    }

    /// Reports the first new word that is not a listed synonym of the word it replaces.
    pub fn check(&self, row: &mut Row<'_>, old: &Sequence, new: &Sequence) {
        let (Sequence::Tokens(old), Sequence::Tokens(new)) = (old, new) else {
            return;
        };
        let changed = old.iter().zip(new).filter(|(old, new)| old != new);
        let mut changed = changed.filter(|(old, new)| !self.allows(**old, **new));
        if let Some((old, new)) = changed.next() {
            let stored = format!("{} -> {}", self.text(*old), self.text(*new));
            let rule = "a synonym of the word";
            row.report.add(row.n, row.id, "constraints", &stored, rule);
        }
    }

    fn text(&self, token: u32) -> &str {
        match (token as usize) < self.words.len() {
            true => self.words.value(token as usize),
            false => "",
        }
    }

    fn allows(&self, old: u32, new: u32) -> bool {
        let mut distinct: Vec<u32> = Vec::new();
        for word in self.of.get(&old).into_iter().flatten() {
            if *word != old && !distinct.contains(word) {
                distinct.push(*word);
            }
        }
        distinct.iter().take(self.most).any(|word| *word == new)
    }
}
