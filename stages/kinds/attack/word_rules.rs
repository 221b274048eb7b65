//! Whether a word may replace another, by the constraints of a stage: for attacks that look at one replacement at a time.
//! `replay` does not use this code, so that a mistake here is found there.

use arrow::array::{Array, StringArray};
use nn::linear::Vectors;

use super::constraints::WordConstraints;
use super::context::AttackContext;
use super::lexicon::{PartsOfSpeech, is_stop_word};
use crate::Failure;
use crate::tables::lemmas::Lemmas;

/// The rules, and what they are about.
pub struct WordRules<'a> {
    rules: WordConstraints,
    words: &'a StringArray,
    vectors: Option<&'a Vectors>,
    lemmas: Option<&'a Lemmas>,
    tagger: PartsOfSpeech,
    pad: u32,
}

impl<'a> WordRules<'a> {
    /// From what is connected; or what is missing.
    pub fn new(
        context: &'a AttackContext<'a>,
        rules: WordConstraints,
        attack: &str,
    ) -> Result<WordRules<'a>, Failure> {
        let words = context.words(attack)?;
        let vectors = match (rules.similarity > -1.0, rules.pretrained) {
            (false, _) => None,
            (true, true) => Some(context.connected(attack)?),
            (true, false) => Some(context.vectors(attack)?),
        };
        let rows = vectors.map(|vectors| vectors.data.len() / vectors.dim.max(1));
        if let Some(rows) = rows.filter(|rows| *rows != words.len()) {
            return Err(Failure::new(format!(
                "there are vectors of {rows} words, but the vocabulary has {}",
                words.len()
            ))
            .help("connect `vectors` and `vocab` of one tokenize stage"));
        }
        let lemmas = match rules.lexeme {
            true => Some(context.lemmas(attack)?),
            false => None,
        };
        Ok(WordRules {
            rules,
            words,
            vectors,
            lemmas,
            tagger: PartsOfSpeech::new(),
            pad: context.pad,
        })
    }

    /// Whether the word may be replaced at all.
    pub fn replaceable(&self, word: u32) -> bool {
        !self.rules.stop_words || !is_stop_word(self.text(word))
    }

    /// The rule that a word breaks in a place of a text, if it breaks one.
    pub fn broken(&self, text: &[u32], place: usize, new: u32) -> Option<String> {
        let old = text[place];
        let flip = || format!("`{}` for `{}`", self.text(new), self.text(old));
        if !self.replaceable(old) {
            return Some(format!("{}: a stop word", flip()));
        }
        if let Some(vectors) = self.vectors {
            let cosine = cosine(vectors, old, new);
            if cosine <= self.rules.similarity {
                let least = self.rules.similarity;
                return Some(format!(
                    "{}: a cosine of {cosine:.4}, not above {least}",
                    flip()
                ));
            }
        }
        if let Some(lemmas) = self.lemmas {
            let bases = [old, new].map(|word| lemmas.of(self.text(word)));
            if !bases[0].is_disjoint(&bases[1]) {
                return Some(format!("{}: forms of one word", flip()));
            }
        }
        if self.rules.part_of_speech && !self.same_part(text, place, new) {
            return Some(format!("{}: another part of speech", flip()));
        }
        None
    }

    fn same_part(&self, text: &[u32], place: usize, new: u32) -> bool {
        let last = text.iter().rposition(|token| *token != self.pad);
        let text = &text[..last.map_or(0, |last| last + 1)];
        let mut sentence: Vec<&str> = text.iter().map(|token| self.text(*token)).collect();
        let before = self.tagger.at(&sentence, place);
        if let Some(word) = sentence.get_mut(place) {
            *word = self.text(new);
        }
        before.is_some() && self.tagger.at(&sentence, place) == before
    }

    fn text(&self, token: u32) -> &'a str {
        self.words.value(token as usize)
    }
}

/// The cosine of the vectors of two words; 0 if one of them has no direction.
pub fn cosine(vectors: &Vectors, a: u32, b: u32) -> f64 {
    let vector = |token: u32| {
        let at = token as usize * vectors.dim;
        &vectors.data[at..at + vectors.dim]
    };
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let (a, b) = (vector(a), vector(b));
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    match lengths > 0.0 {
        true => dot(a, b) / lengths,
        false => 0.0,
    }
}
