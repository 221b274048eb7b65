//! Words that may stand in the places of others: the synonyms that are connected, in their order.

use std::collections::BTreeMap;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::entry::Budget;
use crate::params::settings::Settings;

/// How many of them are tried.
pub const MAX_CANDIDATES: Param = Param::int(
    "max_candidates",
    0,
    0,
    "The maximum number of synonyms that are tried in a place; 0 = all.",
);

/// How many words are replaced.
pub const MAX_WORDS: Param = Param::int(
    "max_words",
    0,
    0,
    "The maximum number of words that are replaced; 0 = all.",
);

/// What [`MAX_WORDS`] says; none for all.
pub fn max_words(s: Settings<'_>) -> Option<usize> {
    s.maybe_int(MAX_WORDS.name).filter(|most| *most > 0)
}

/// The same as a budget.
pub fn word_budget(s: Settings<'_>) -> Budget {
    max_words(s).map_or(Budget::Unlimited, Budget::Words)
}

/// Synonyms by the ids of words.
pub struct SynonymCandidates {
    of: BTreeMap<u32, Vec<u32>>,
    most: usize,
}

impl SynonymCandidates {
    /// The connected synonyms, at most `most` of each word; 0 for all.
    pub fn new(
        context: &AttackContext<'_>,
        most: usize,
        attack: &str,
    ) -> Result<SynonymCandidates, Failure> {
        let words = context.words(attack)?;
        let of = context.synonyms(attack)?.by_id(words);
        if of.is_empty() {
            return Err(Failure::new(
                "no word of the vocabulary has a synonym in the input `synonyms` that is in it too",
            )
            .help("connect synonyms of the same language and case"));
        }
        Ok(SynonymCandidates {
            of,
            most: if most > 0 { most } else { usize::MAX },
        })
    }

    /// Those of a word, each once. Neither itself nor a special token is among them.
    pub fn of(&self, context: &AttackContext<'_>, word: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for new in self.of.get(&word).into_iter().flatten() {
            let fits = *new != word && !context.special.contains(new) && !found.contains(new);
            if fits && found.len() < self.most {
                found.push(*new);
            }
        }
        found
    }
}
