//! Rules for words that may stand in the place of another. An attack's entry states them, its search keeps them, and
//! `replay` checks them with separate code.

use crate::ParamError;
use crate::contract::description::Param;
use crate::params::settings::Settings;

/// Minimum cosine.
pub const SIMILARITY: Param = Param::float(
    "similarity",
    0.8,
    (-1.0, 1.0),
    "Minimum cosine similarity of the new word's vector and the old one's (exclusive).",
);
/// Of which vectors.
pub const COSINE_OF: Param = Param::choice(
    "cosine_of",
    &["model", "pretrained"],
    "Whose vectors are compared: those that the model reads, or the connected ones before it trained on them.",
);
/// The same part of speech.
pub const SAME_PART_OF_SPEECH: Param = Param::flag(
    "same_part_of_speech",
    true,
    "Whether the new word must have the old one's part of speech in its sentence.",
);
/// Stop words.
pub const KEEP_STOP_WORDS: Param = Param::flag(
    "keep_stop_words",
    true,
    "Whether stop words (NLTK's list) are never replaced.",
);
/// Another lexeme.
pub const OTHER_LEXEME: Param = Param::flag(
    "other_lexeme",
    true,
    "Whether the new word must not share a base form with the old one; needs the input `lemmas`.",
);

/// The same text.
pub const SENTENCE_SIMILARITY: Param = Param::float(
    "sentence_similarity",
    0.84,
    (-1.0, 1.0),
    "Minimum cosine similarity of the new text and the original (exclusive), by the means of their words' vectors in the input `vectors`; -1 = off.",
);

/// Rules for replaced words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordConstraints {
    /// The cosine of both vectors is above this.
    pub similarity: f64,
    /// It is that of the connected vectors, and not of those that the model reads.
    pub pretrained: bool,
    /// Both are the same part of speech in their sentence.
    pub part_of_speech: bool,
    /// The word that is replaced is not a stop word.
    pub stop_words: bool,
    /// They have no base form in common.
    pub lexeme: bool,
    /// The cosine of the means of both texts' connected vectors is above this.
    pub sentence: f64,
}

impl WordConstraints {
    /// For literals: anything goes.
    pub const NONE: WordConstraints = WordConstraints {
        similarity: -1.0,
        pretrained: false,
        part_of_speech: false,
        stop_words: false,
        lexeme: false,
        sentence: -1.0,
    };

    /// From the parameters above.
    pub fn read(s: Settings<'_>) -> Result<WordConstraints, ParamError> {
        Ok(WordConstraints {
            similarity: s.float("similarity")?,
            pretrained: s.one_of("cosine_of", &[("model", false), ("pretrained", true)])?,
            part_of_speech: s.flag("same_part_of_speech")?,
            stop_words: s.flag("keep_stop_words")?,
            lexeme: s.flag("other_lexeme")?,
            ..WordConstraints::NONE
        })
    }

    /// The inputs that they need beside vocabulary and model.
    pub fn needs(&self) -> Vec<&'static str> {
        let vectors = self.pretrained || self.sentence > -1.0;
        let needs = [(self.lexeme, "lemmas"), (vectors, "vectors")];
        let needs = needs.into_iter().filter(|(needed, _)| *needed);
        needs.map(|(_, port)| port).collect()
    }
}
