//! What is known of English words beside their vectors: parts of speech in a sentence, and stop words.
//!
//! The tagger is the one of `harper-brill`, with the universal tag set; the stop words are NLTK's.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::StringArray;
use harper_brill::{BrillTagger, FreqDict, Tagger, UPOS, brill_tagger};

use crate::Failure;

/// A tagger.
pub struct PartsOfSpeech(Arc<BrillTagger<FreqDict>>);

impl PartsOfSpeech {
    /// The tagger that is in the program.
    pub fn new() -> PartsOfSpeech {
        PartsOfSpeech(brill_tagger())
    }

    /// The usual part of speech of each word that no patch of the tagger names: two such words with the same one get
    /// the same part of speech in the same place.
    pub fn usual(&self, words: &StringArray) -> Result<Vec<Option<UPOS>>, Failure> {
        usual_parts(&self.0, words)
    }

    /// The part of speech of one word of a sentence; none if the tagger does not know the word.
    pub fn at(&self, sentence: &[&str], place: usize) -> Option<UPOS> {
        let sentence: Vec<String> = sentence.iter().map(|word| (*word).to_owned()).collect();
        let tags = self.0.tag_sentence(&sentence);
        tags.get(place).copied().flatten()
    }
}

/// The part of speech that a word has before patches, unless a patch compares words with it: those go by their first
/// letters, as many as both have.
pub fn usual_parts(
    tagger: &BrillTagger<FreqDict>,
    words: &StringArray,
) -> Result<Vec<Option<UPOS>>, Failure> {
    let wrong = |error: serde_json::Error| Failure::new(format!("the tagger: {error}"));
    let whole = serde_json::to_value(tagger).map_err(wrong)?;
    let base: FreqDict = serde_json::from_value(whole["base"].clone()).map_err(wrong)?;
    let mut named = Vec::new();
    name(&whole["patches"], &mut named);
    let begins = |a: &str, b: &str| {
        let mut pairs = a.chars().zip(b.chars());
        pairs.all(|(a, b)| a.eq_ignore_ascii_case(&b))
    };
    let of = |word: Option<&str>| {
        let word = word.unwrap_or_default();
        let known = base.get(word)?;
        let compared = named.iter().any(|named| begins(word, named));
        (!compared).then_some(known)
    };
    Ok(words.iter().map(of).collect())
}

/// The words that patches name, wherever they do.
fn name(value: &serde_json::Value, named: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(list) => list.iter().for_each(|value| name(value, named)),
        serde_json::Value::Object(map) => {
            if let Some(word) = map.get("word").and_then(|word| word.as_str()) {
                named.push(word.to_owned());
            }
            map.values().for_each(|value| name(value, named));
        }
        _ => {}
    }
}

/// Whether a word is in NLTK's list of English stop words, in any case.
pub fn is_stop_word(word: &str) -> bool {
    static STOP_WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| stop_words::get("en").iter().copied().collect());
    STOP_WORDS.contains(word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_speech_depends_on_the_sentence() {
        let tagger = PartsOfSpeech::new();
        let at = |sentence: &str, place| {
            let words: Vec<&str> = sentence.split(' ').collect();
            tagger.at(&words, place)
        };
        assert_eq!(at("the film is good", 1), Some(UPOS::NOUN));
        assert_eq!(at("the film is good", 3), Some(UPOS::ADJ));
        assert_eq!(at("the show was dull", 1), Some(UPOS::NOUN));
        assert_eq!(at("to show you that", 1), Some(UPOS::VERB));
        assert_eq!(at("a xqzzkw film", 1), None);
        assert_eq!(at("a film", 7), None);
    }

    #[test]
    fn stop_words_are_those_of_nltk() {
        for word in ["the", "The", "is", "not", "very", "don't"] {
            assert!(is_stop_word(word), "{word}");
        }
        // Longer lists have these; the paper replaces them.
        for word in ["good", "interesting", "film", "", "."] {
            assert!(!is_stop_word(word), "{word}");
        }
    }
}
