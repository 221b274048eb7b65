//! Words that could stand in a place: like the one that is there, of its part of speech, and in the order in
//! which a language model expects them after the words before. Looks at nothing that comes later.
//!
//! What stands in for the paper's tools: an n-gram model for GPT-2, the tagger of `harper-brill` for
//! NLTK's, and the cosine of the victim's own word vectors for "similar".

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, StringArray};
use harper_brill::{BrillTagger, FreqDict, Tagger, UPOS, brill_tagger};
use ndarray::{Array2, aview1};
use nn::linear::Vectors;
use nn::ngrams::KneserNey;
use nn::numeric::similar;

use crate::Failure;
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::lexicon::usual_parts;

/// How sets are made.
#[derive(Clone, Copy, Debug)]
pub struct Taste {
    /// Words in a set, at most.
    pub most: usize,
    /// The cosine that a word must be above.
    pub similarity: f32,
    /// Whether the word in place is a candidate like any other.
    pub own_word: bool,
}

/// Sets of words for places of texts.
pub struct Candidates<'a> {
    language: &'a KneserNey,
    words: &'a StringArray,
    vectors: &'a Vectors,
    tagger: Arc<BrillTagger<FreqDict>>,
    taste: Taste,
    /// Words that may be put in, ascending, and their vectors at length 1.
    eligible: Vec<u32>,
    units: Array2<f32>,
    /// The eligible words that are like a word, once it has been asked for.
    like: Vec<OnceLock<Vec<u32>>>,
    /// The usual part of speech of words that no patch of the tagger names.
    usual: Vec<Option<UPOS>>,
}

impl<'a> Candidates<'a> {
    /// From the inputs `language`, `vocab` and `vectors` of an attack.
    pub fn new(
        attack: &str,
        context: &AttackContext<'a>,
        taste: Taste,
    ) -> Result<Candidates<'a>, Failure> {
        let (language, words) = (context.language(attack)?, context.words(attack)?);
        let vectors = context.vectors(attack)?;
        let tagger = brill_tagger();
        // A word that the tagger does not know, or that no text had, is never put in.
        let fits = |token: &u32| {
            !context.special.contains(token)
                && tag(&tagger, &[words.value(*token as usize)]).is_some()
        };
        let eligible: Vec<u32> = language.seen().iter().copied().filter(fits).collect();
        let units = eligible.iter().flat_map(|token| unit(vectors, *token));
        let units: Vec<f32> = units.collect();
        let units = Array2::from_shape_vec((eligible.len(), vectors.dim), units);
        let units = units.map_err(|e| Failure::new(e.to_string()))?;
        let like = (0..words.len()).map(|_| OnceLock::new()).collect();
        let usual = usual_parts(&tagger, words)?;
        Ok(Candidates {
            language,
            words,
            vectors,
            tagger,
            taste,
            eligible,
            units,
            like,
            usual,
        })
    }

    /// Words for the place of `word`, the best first; `before` is the text up to there.
    pub fn of(&self, before: &[u32], word: u32) -> Vec<u32> {
        let back = before.len().min(self.language.order() - 1);
        let before = &before[before.len() - back..];
        let mut sentence: Vec<&str> = before.iter().map(|token| self.text(*token)).collect();
        sentence.push(self.text(word));
        let Some(part) = tag(&self.tagger, &sentence) else {
            return Vec::new();
        };
        let like = self.like[word as usize].get_or_init(|| self.like(word));
        // What patches of the tagger do not name is told apart by its usual part of speech alone.
        let mut told: BTreeMap<UPOS, bool> = BTreeMap::new();
        let mut set = Vec::with_capacity(self.taste.most);
        for token in self.language.ranked(before, like) {
            if set.len() == self.taste.most {
                break;
            }
            sentence[back] = self.text(token);
            let same = || tag(&self.tagger, &sentence) == Some(part);
            let same = match self.usual[token as usize] {
                Some(usual) => *told.entry(usual).or_insert_with(same),
                None => same(),
            };
            if same {
                set.push(token);
            }
        }
        set
    }

    /// The vector of a word.
    pub fn vector(&self, token: u32) -> &'a [f32] {
        let at = token as usize * self.vectors.dim;
        &self.vectors.data[at..at + self.vectors.dim]
    }

    /// Eligible words whose vectors have a cosine above the limit with that of a word, which is one of them only if
    /// the taste says so.
    fn like(&self, word: u32) -> Vec<u32> {
        let unit = unit(self.vectors, word);
        let places = similar(self.units.view(), aview1(&unit), self.taste.similarity);
        let tokens = places.into_iter().map(|place| self.eligible[place]);
        let own = self.taste.own_word;
        tokens.filter(|token| own || *token != word).collect()
    }

    fn text(&self, token: u32) -> &'a str {
        self.words.value(token as usize)
    }
}

/// The part of speech of the last word, if it is known.
fn tag(tagger: &BrillTagger<FreqDict>, sentence: &[&str]) -> Option<UPOS> {
    let sentence: Vec<String> = sentence.iter().map(|word| (*word).to_owned()).collect();
    tagger.tag_sentence(&sentence).pop().flatten()
}

/// A word's vector at length 1; zeros stay.
fn unit(vectors: &Vectors, token: u32) -> Vec<f32> {
    let at = token as usize * vectors.dim;
    let vector = &vectors.data[at..at + vectors.dim];
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = if square > 0.0 { square.sqrt() } else { 1.0 };
    vector
        .iter()
        .map(|x| (f64::from(*x) / length) as f32)
        .collect()
}
