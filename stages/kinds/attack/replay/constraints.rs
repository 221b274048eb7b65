//! The rules for replaced words, looked up again one flip at a time: what the attack kept in lists is worked out here
//! from the model's weights, the tagger and the lists of words.

use arrow::array::{Array, StringArray};
use nn::batch::Sequence;
use nn::linear::Vectors;

use super::row::{Row, cosine};
use crate::kinds::attack::constraints::WordConstraints;
use crate::kinds::attack::inputs::read_by;
use crate::kinds::attack::lexicon::{PartsOfSpeech, is_stop_word};
use crate::models::loaded::Loaded;
use crate::tables::examples::POSITIONS;
use crate::tables::lemmas::Lemmas;
use crate::tables::vocabulary;
use crate::{Failure, Task};

/// The rules, and what they are about.
pub struct Rules {
    rules: WordConstraints,
    words: StringArray,
    vectors: Option<Vectors>,
    /// Those by which texts are compared.
    sentences: Option<Vectors>,
    lemmas: Option<Lemmas>,
    tagger: PartsOfSpeech,
}

impl Rules {
    /// From the inputs of the stage and the model that was read from its weights.
    pub fn open(
        rules: WordConstraints,
        task: &Task<'_>,
        loaded: &Loaded,
        connected: Option<&Vectors>,
    ) -> Result<Rules, Failure> {
        let missing = |port: &str| Failure::new(format!("the input `{port}` is missing"));
        let vocab = task.inputs.get("vocab").ok_or_else(|| missing("vocab"))?;
        let vectors = match rules.pretrained {
            true => connected.cloned(),
            false => read_by(loaded, connected),
        };
        let lemmas = match rules.lexeme {
            true => {
                let table = task.inputs.get("lemmas").ok_or_else(|| missing("lemmas"))?;
                Some(Lemmas::read(table, "lemmas")?)
            }
            false => None,
        };
        let sentences = match rules.sentence > -1.0 {
            true => Some(connected.cloned().ok_or_else(|| missing("vectors"))?),
            false => None,
        };
        Ok(Rules {
            sentences,
            rules,
            words: vocabulary::words(vocab, "vocab")?,
            vectors: match rules.similarity > -1.0 {
                true => Some(vectors.ok_or_else(|| missing("vectors"))?),
                false => None,
            },
            lemmas,
            tagger: PartsOfSpeech::new(),
        })
    }

    /// The word of an id.
    fn text(&self, token: u32) -> &str {
        match (token as usize) < self.words.len() {
            true => self.words.value(token as usize),
            false => "",
        }
    }

    /// That every replaced word of a row was allowed to be, one after the other in the order of the list.
    pub fn check(&self, row: &mut Row<'_>, pad: u32, old: &Sequence, new: &Sequence) {
        let (Sequence::Tokens(old), Sequence::Tokens(new)) = (old, new) else {
            return;
        };
        let mut text = old.clone();
        for position in row.table.ints(POSITIONS, row.n).unwrap_or_default() {
            let at = usize::try_from(position).unwrap_or(usize::MAX);
            // Places that are not there were told already.
            let (Some(_), Some(word)) = (text.get(at), new.get(at)) else {
                continue;
            };
            for broken in self.broken(&text, at, *word, pad) {
                let flip = format!("{} -> {}", self.text(text[at]), self.text(*word));
                row.report.add(row.n, row.id, "constraints", &flip, &broken);
            }
            text[at] = *word;
        }
        let sums = self.sentences.as_ref().map(|vectors| {
            let sum = |text: &[u32]| sum(vectors, text, pad);
            cosine(&sum(old), &sum(new))
        });
        // Sums are of 32 bits here, and of 64 in the attack. A row that stays is like itself.
        let far = |found: &f64| *found <= self.rules.sentence - 1e-4 && old != new;
        if let Some(found) = sums.filter(far) {
            let rule = format!("texts with a cosine above {}", self.rules.sentence);
            let found = format!("a cosine of {found:.6}");
            row.report.add(row.n, row.id, "constraints", &found, &rule);
        }
    }

    /// What is wrong with putting a word into a place of a text.
    fn broken(&self, text: &[u32], place: usize, new: u32, pad: u32) -> Vec<String> {
        let (rules, old) = (&self.rules, text[place]);
        let mut broken = Vec::new();
        let cosine = self.vectors.as_ref().map(|vectors| {
            let vector = |token| vector(vectors, token);
            cosine(vector(old), vector(new))
        });
        // The attack sums in 32 bits.
        if let Some(cosine) = cosine.filter(|cosine| *cosine <= rules.similarity - 1e-5) {
            broken.push(format!(
                "a cosine of {cosine:.6}, not above {}",
                rules.similarity
            ));
        }
        if rules.stop_words && is_stop_word(self.text(old)) {
            broken.push("a stop word was replaced".to_owned());
        }
        let bases = |token: u32| Some(self.lemmas.as_ref()?.of(self.text(token)));
        if let Some((old, new)) = bases(old).zip(bases(new))
            && let Some(shared) = old.intersection(&new).next()
        {
            broken.push(format!("both words are forms of `{shared}`"));
        }
        if rules.part_of_speech {
            let mut parts = [old, new].map(|word| {
                let mut text = text.to_vec();
                text[place] = word;
                while text.last() == Some(&pad) {
                    text.pop();
                }
                let sentence: Vec<&str> = text.iter().map(|token| self.text(*token)).collect();
                self.tagger.at(&sentence, place)
            });
            if parts[0].is_none() || parts[0] != parts[1] {
                let parts = parts.each_mut().map(|part| match part {
                    Some(part) => format!("{part:?}"),
                    None => "unknown".to_owned(),
                });
                broken.push(format!(
                    "parts of speech {} and {}, not the same",
                    parts[0], parts[1]
                ));
            }
        }
        broken
    }
}

/// The sum of the vectors of a text's words.
fn sum(vectors: &Vectors, text: &[u32], pad: u32) -> Vec<f32> {
    let mut all = vec![0.0; vectors.dim];
    for token in text.iter().filter(|token| **token != pad) {
        let each = all.iter_mut().zip(vector(vectors, *token));
        each.for_each(|(sum, x)| *sum += x);
    }
    all
}

fn vector(vectors: &Vectors, token: u32) -> &[f32] {
    let at = token as usize * vectors.dim;
    vectors.data.get(at..at + vectors.dim).unwrap_or_default()
}
