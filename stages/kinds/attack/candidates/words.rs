//! Which tokens are words: they may be replaced, and put in if the input `candidates` has them or is not connected.
//! Special tokens are none, nor are the pieces of words that word-piece makes. `replace-word`, which can be told to
//! replace pieces, has rules of its own.

use std::collections::HashSet;

use crate::Failure;
use crate::kinds::attack::context::AttackContext;
use crate::tables::vocabulary::SPECIAL;

/// The words of a vocabulary.
pub struct Words {
    special: HashSet<u32>,
    /// Tokens that go on with the word before.
    pieces: HashSet<u32>,
    /// Words that may be put in.
    candidates: Vec<u32>,
}

impl Words {
    /// Those of the connected vocabulary.
    pub fn new(context: &AttackContext<'_>, attack: &str) -> Result<Words, Failure> {
        let words = context.words(attack)?;
        let those = |test: &dyn Fn(&str) -> bool| -> HashSet<u32> {
            let named = words.iter().zip(0_u32..);
            let named = named.filter(|(word, _)| word.is_some_and(test));
            named.map(|(_, id)| id).collect()
        };
        let mut special = those(&|word| SPECIAL.contains(&word));
        special.extend(context.special);
        let pieces = those(&|word| word.starts_with("##"));
        let listed: Option<HashSet<&str>> = context
            .candidates
            .map(|listed| listed.iter().flatten().collect());
        let candidates = those(&|word| listed.as_ref().is_none_or(|listed| listed.contains(word)));
        let mut candidates: Vec<u32> = candidates.into_iter().collect();
        candidates.retain(|id| !special.contains(id) && !pieces.contains(id));
        candidates.sort_unstable();
        match candidates.is_empty() {
            false => Ok(Words {
                special,
                pieces,
                candidates,
            }),
            true => Err(Failure::new(
                "no word of the input `candidates` is in the vocabulary of the rows",
            )
            .help("connect words of the same language and case")),
        }
    }

    /// The places of words in a text. A word in pieces is not replaced.
    pub fn places(&self, text: &[u32]) -> Vec<usize> {
        let piece = |token: Option<&u32>| token.is_some_and(|token| self.pieces.contains(token));
        let word = |place: &usize| {
            let (here, next) = (text.get(*place), text.get(*place + 1));
            !self.special.contains(&text[*place]) && !piece(here) && !piece(next)
        };
        (0..text.len()).filter(word).collect()
    }

    /// One that may be put in.
    pub fn any(&self) -> u32 {
        self.candidates[0]
    }

    /// The words that may take the place of this one, by their ids in ascending order.
    pub fn others(&self, word: u32) -> Vec<u32> {
        let others = self.candidates.iter().copied();
        others.filter(|other| *other != word).collect()
    }
}
