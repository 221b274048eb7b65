//! The words that an attack on characters must not make: those of a vocabulary, spelt in the ids of a grid.
//! Knows nothing of edits.

use std::collections::{HashMap, HashSet};

use arrow::array::StringArray;
use nn::batch::Sequence;

use crate::Failure;
use crate::tables::sequences::{Form, SequenceTable};

/// The input that has them.
pub const PORT: &str = "known_words";

/// Words without their padding.
pub struct KnownWords {
    words: HashSet<Box<[u32]>>,
}

impl KnownWords {
    /// From words and the characters by id. Longer words than the grid has are cut as the grid cuts them.
    pub fn new(words: &StringArray, letters: &StringArray, form: &Form) -> Result<Self, Failure> {
        let Form::Chars { width, unknown, .. } = form else {
            return Err(Failure::new(format!(
                "the input `{PORT}` is for words of characters, and `rows` are {}",
                form.rows().name()
            ))
            .help("leave it out, or tokenize with scheme = \"char-grid\""));
        };
        let ids = letters.iter().zip(0_u32..);
        let ids: HashMap<&str, u32> = ids.filter_map(|(text, id)| Some((text?, id))).collect();
        let spell = |word: &str| {
            let mut buffer = [0; 4];
            let letter = |c: char| ids.get(&*c.encode_utf8(&mut buffer)).copied();
            let letters = word.chars().take(width.saturating_sub(1)).map(letter);
            letters.map(|id| id.unwrap_or(*unknown)).collect()
        };
        Ok(KnownWords {
            words: words.iter().flatten().map(spell).collect(),
        })
    }

    /// Whether this is one of them.
    pub fn contains(&self, word: &[u32]) -> bool {
        self.words.contains(word)
    }

    /// Refuses words of other texts: all words of the training split must be known. And a grid whose words do not
    /// end in padding, which characters could not move into.
    pub fn check(
        &self,
        rows: &SequenceTable,
        train: &str,
        letters: &StringArray,
    ) -> Result<(), Failure> {
        let [pad, unknown] = rows.form.special().unwrap_or_default();
        let (mut all, mut missing) = (HashSet::new(), HashSet::new());
        let mut first = None;
        for (n, example) in rows.examples.iter().enumerate() {
            let Sequence::Chars { width, ids } = &example.input else {
                continue;
            };
            for (k, word) in ids.chunks(*width).enumerate() {
                if word.last() != Some(&pad) {
                    return Err(no_padding(&rows.ids[n], k));
                }
                let word = spelt(word, pad);
                // A text without words is read as one unknown character.
                if rows.splits[n] != train || word.is_empty() || word == [unknown] {
                    continue;
                }
                if all.insert(word) && !self.contains(word) {
                    missing.insert(word);
                    first = first.or(Some(word));
                }
            }
        }
        match first {
            None => Ok(()),
            Some(word) => {
                let text: String = word.iter().map(|id| letters.value(*id as usize)).collect();
                Err(Failure::new(format!(
                    "`{PORT}` lacks {} of the {} words of the split `{train}`, such as `{text}`",
                    missing.len(),
                    all.len()
                ))
                .help("connect the output `vocab` of a tokenize stage of the same texts with scheme = \"words-punctuation\" and lowercase = false"))
            }
        }
    }
}

/// A word without the padding at its end.
pub fn spelt(word: &[u32], pad: u32) -> &[u32] {
    let end = word.iter().rposition(|id| *id != pad);
    &word[..end.map_or(0, |last| last + 1)]
}

fn no_padding(id: &str, word: usize) -> Failure {
    Failure::new(format!(
        "word {word} of the row with the id {id} has no padding at its end"
    ))
    .help("make the grid with a tokenize stage: scheme = \"char-grid\" leaves the last slot of every word free")
}
