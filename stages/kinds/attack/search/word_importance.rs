//! How much each word matters to a prediction, by asking about the text without it; and asking about texts that differ
//! from another in one place. Nothing is looked at but answers: any model will do.

use nn::batch::Sequence;

use crate::Failure;
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::trace::Trace;
use crate::models::loaded::probabilities;
use crate::tables::examples::{FORWARD, QUERIES};

/// What becomes of a word whose importance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// It is deleted.
    Deleted,
    /// The unknown token stands in its place.
    Unknown,
}

/// The model's answers for texts, which are counted.
pub fn ask(
    context: &AttackContext<'_>,
    texts: Vec<Vec<u32>>,
    trace: &mut Trace,
) -> Result<Vec<Vec<f32>>, Failure> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    trace.count(FORWARD, texts.len() as u64);
    trace.count(QUERIES, texts.len() as u64);
    let texts: Vec<Sequence> = texts.into_iter().map(Sequence::Tokens).collect();
    let texts: Vec<&Sequence> = texts.iter().collect();
    probabilities(context.subject.victim(), &texts)
}

/// The model's answers without each of these words. A text that is one word long stays, and is not asked about: none is
/// given for it.
pub fn without(
    context: &AttackContext<'_>,
    text: &[u32],
    places: &[usize],
    how: Without,
    trace: &mut Trace,
) -> Result<Option<Vec<Vec<f32>>>, Failure> {
    let written = text.iter().filter(|token| **token != context.pad).count();
    if how == Without::Deleted && written < 2 {
        return Ok(None);
    }
    let one = |place: &usize| {
        let mut text = text.to_vec();
        match how {
            Without::Deleted => drop(text.remove(*place)),
            Without::Unknown => text[*place] = context.special[1],
        }
        text
    };
    ask(context, places.iter().map(one).collect(), trace).map(Some)
}

/// The model's answers with each of these words in a place.
pub fn with_each(
    context: &AttackContext<'_>,
    text: &[u32],
    place: usize,
    words: &[u32],
    trace: &mut Trace,
) -> Result<Vec<Vec<f32>>, Failure> {
    let one = |word: &u32| {
        let mut text = text.to_vec();
        text[place] = *word;
        text
    };
    ask(context, words.iter().map(one).collect(), trace)
}

/// The items by their scores, the largest first; of equals the first.
pub fn by_score<T>(items: impl IntoIterator<Item = T>, scores: &[f64]) -> Vec<T> {
    let mut scored: Vec<(T, f64)> = items.into_iter().zip(scores.iter().copied()).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.into_iter().map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first_and_of_equals_the_first() {
        assert_eq!(
            by_score([7, 8, 9, 10], &[0.5, 2.0, 0.5, -1.0]),
            [8, 7, 9, 10]
        );
    }
}
