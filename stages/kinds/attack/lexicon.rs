//! What is known of English words beside their vectors: parts of speech in a sentence, and stop words.
//!
//! The tagger is the one of `harper-brill`, with the universal tag set; the stop words are NLTK's.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use harper_brill::{BrillTagger, FreqDict, Tagger, UPOS, brill_tagger};

/// A tagger.
pub struct PartsOfSpeech(Arc<BrillTagger<FreqDict>>);

impl PartsOfSpeech {
    /// The tagger that is in the program.
    pub fn new() -> PartsOfSpeech {
        PartsOfSpeech(brill_tagger())
    }

    /// The part of speech of one word of a sentence; none if the tagger does not know the word.
    pub fn at(&self, sentence: &[&str], place: usize) -> Option<UPOS> {
        let sentence: Vec<String> = sentence.iter().map(|word| (*word).to_owned()).collect();
        let tags = self.0.tag_sentence(&sentence);
        tags.get(place).copied().flatten()
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
