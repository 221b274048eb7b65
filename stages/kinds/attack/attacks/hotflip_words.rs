//! HotFlip for words (P2, section on word-level models): the flip whose gradient promises the largest loss, among
//! words that keep the meaning.
//!
//! Paper: Ebrahimi, Rao, Lowd, Dou, "HotFlip: White-Box Adversarial Examples for Text Classification",
//! arXiv:1712.06751.
//!
//! ```text
//! for at most `max_flips` rounds, until the model is wrong:
//!     g(i) = d J(x, y) / d e_{x[i]} for every place i                # J: cross-entropy with the true class
//!     x[i] = w for the place i and word w with the largest (e_w - e_{x[i]}) . g(i), where
//!         x[i] is not a stop word, and i was not changed before
//!         cosine(e_w, e_{x[i]}) > 0.8
//!         w has the part of speech of x[i] in this sentence, and no base form in common with it
//! ```
//!
//! Differs: `harper-brill` tags in place of the authors' tagger, and a word that it does not know is neither replaced
//! nor put in; two words share a lexeme if they share a base form as any part of speech, which is stricter than as
//! the one at hand. Rows that the model gets wrong before are left alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use arrow::array::{Array, StringArray};
use harper_brill::UPOS;
use ndarray::ArrayView2;
use nn::batch::{Example, Sequence, Target};
use nn::linear::Vectors;
use nn::numeric::Cosines;
use nn::objectives::Objective;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::constraints::{
    COSINE_OF, KEEP_STOP_WORDS, OTHER_LEXEME, SAME_PART_OF_SPEECH, SIMILARITY, WordConstraints,
};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack, Victims};
use crate::kinds::attack::goals::Goal;
use crate::kinds::attack::lexicon::{PartsOfSpeech, is_stop_word};
use crate::kinds::attack::search::beam::{Beam, Look};
use crate::kinds::attack::trace::Trace;
use crate::models::failure as refused;
use crate::params::settings::failure;
use crate::tables::lemmas::Lemmas;

const NAME: &str = "hotflip-words";

const MAX_FLIPS: Param = Param::int(
    "max_flips",
    2,
    1,
    "The maximum number of words that are replaced.",
);

/// The attack.
pub struct HotflipWords;

/// What the tagger said of one place: tagging is slow beside everything else.
#[derive(Default)]
struct Told {
    /// The part of speech of the word that is there, once it was asked for.
    part: Option<Option<UPOS>>,
    /// Whether words with this usual part of speech have the same one here.
    by_usual: BTreeMap<UPOS, bool>,
}

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    words: &'a StringArray,
    vectors: &'a Vectors,
    rules: WordConstraints,
    flips: usize,
    cosines: Cosines,
    lemmas: Option<&'a Lemmas>,
    tagger: PartsOfSpeech,
    /// The usual part of speech of words that are told apart by it alone.
    usual: Vec<Option<UPOS>>,
    /// What may stand in the place of a word as far as the sentence does not matter, once it has been asked for.
    swaps: Vec<OnceLock<Vec<u32>>>,
}

impl Attack for HotflipWords {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/hotflip_words.rs",
            summary: "Replaces the words that the gradient says raise the loss most, by words of like meaning.",
            details: "One word after the other: of all allowed flips the one with the largest first-order rise of the cross-entropy, until the prediction changes or `max_flips` are made. A new word has a vector like the old one's, its part of speech in the sentence and another base form; stop words stay. No place is changed twice. Rows that the model misclassifies are left alone.",
            paper: "Ebrahimi et al. 2018, arXiv:1712.06751",
            params: &[
                MAX_FLIPS,
                SIMILARITY,
                COSINE_OF,
                SAME_PART_OF_SPEECH,
                KEEP_STOP_WORDS,
                OTHER_LEXEME,
            ],
            changes: Changes::Words,
            victims: Victims::Networks,
            needs: &["vocab"],
            needs_with: |s| WordConstraints::read(s).map_or(Vec::new(), |rules| rules.needs()),
            budget: |s| {
                s.maybe_int("max_flips")
                    .map_or(Budget::Unlimited, Budget::Words)
            },
            constraints: |s| WordConstraints::read(s).ok(),
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let settings = context.settings();
        let rules = WordConstraints::read(settings).map_err(failure)?;
        context.gradients(NAME)?;
        let (words, vectors) = (context.words(NAME)?, context.vectors(NAME)?);
        let compared = match rules.pretrained {
            true => pretrained(context)?,
            false => vectors,
        };
        for vectors in [vectors, compared] {
            let rows = vectors.data.len() / vectors.dim.max(1);
            if rows != words.len() {
                return Err(Failure::new(format!(
                    "there are vectors of {rows} words, but the vocabulary has {}",
                    words.len()
                ))
                .help("connect `vectors` and `vocab` of one tokenize stage"));
            }
        }
        let lemmas = match rules.lexeme {
            true => Some(context.lemmas(NAME)?),
            false => None,
        };
        let tagger = PartsOfSpeech::new();
        let usual = match rules.part_of_speech {
            true => tagger.usual(words)?,
            false => Vec::new(),
        };
        Ok(Box::new(Prepared {
            context,
            words,
            vectors,
            rules,
            flips: settings.int("max_flips").map_err(failure)?,
            cosines: Cosines::new(compared.view()),
            lemmas,
            tagger,
            usual,
            swaps: (0..words.len()).map(|_| OnceLock::new()).collect(),
        }))
    }
}

/// The connected vectors, if the model reads others by now.
fn pretrained<'a>(context: &AttackContext<'a>) -> Result<&'a Vectors, Failure> {
    let (own, connected) = (context.vectors(NAME)?, context.connected);
    let connected = connected.ok_or_else(|| {
        Failure::new("cosine_of = \"pretrained\" needs the input `vectors`")
            .help("connect it to the embed stage that the model was trained with")
            .at("cosine_of")
    })?;
    match own == connected {
        false => Ok(connected),
        true => Err(Failure::new(
            "`cosine_of` would have no effect here: the model reads the connected vectors as they are",
        )
        .help("leave it out, or train the victim with vectors = \"trained\"")
        .at("cosine_of")),
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let right: Vec<Item<'_>> = items.iter().filter(|i| i.right()).cloned().collect();
        let goal = |item: &Item<'_>| Goal::untargeted(item.label);
        let look = |texts: &[(usize, &Sequence, &[Edit])]| self.look(&right, texts);
        let greedy = Beam { width: 1 };
        let found = greedy.search(&right, goal, |_| self.flips, look)?;
        let mut found = found.into_iter();
        let trace = |item: &Item<'_>| match item.right() {
            true => found.next().unwrap_or_else(|| Trace::untouched(item)),
            false => Trace::untouched(item),
        };
        Ok(items.iter().map(trace).collect())
    }
}

impl Prepared<'_> {
    /// Logits and the best flip of many texts, by one batch of gradients.
    fn look(
        &self,
        items: &[Item<'_>],
        texts: &[(usize, &Sequence, &[Edit])],
    ) -> Result<Vec<Look>, Failure> {
        let example = |(item, text, _): &(usize, &Sequence, &[Edit])| Example {
            input: (*text).clone(),
            target: Target::Class(items[*item].label),
        };
        let examples: Vec<Example> = texts.iter().map(example).collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let victim = self.context.subject.victim();
        let gradients = victim.gradients(&examples, &Objective::CrossEntropy);
        let gradients = gradients.map_err(refused)?.into_iter();
        gradients
            .zip(texts)
            .map(|(gradient, (_, text, done))| {
                let Sequence::Tokens(tokens) = text else {
                    return Err(Failure::new(
                        "this attack changes words, and these are none",
                    ));
                };
                Ok(Look {
                    logits: gradient.logits.row(0).to_vec(),
                    edits: self
                        .best(tokens, done, gradient.input.view())
                        .into_iter()
                        .collect(),
                })
            })
            .collect()
    }

    /// The flip with the largest estimate; of equals the first place, and there the lowest id.
    fn best(
        &self,
        tokens: &[u32],
        done: &[Edit],
        gradient: ArrayView2<'_, f32>,
    ) -> Option<(f64, Edit)> {
        let last = tokens
            .iter()
            .rposition(|token| *token != self.context.pad)?;
        let tokens = &tokens[..=last];
        let sentence: Vec<&str> = tokens.iter().map(|token| self.text(*token)).collect();
        let mut best: Option<(f32, usize, u32)> = None;
        for (place, old) in tokens.iter().enumerate() {
            let changed = done.iter().any(|edit| edit.position() == place);
            if changed || self.context.special.contains(old) {
                continue;
            }
            let g = gradient.row(place);
            let g = g.as_slice()?;
            let here = dot(g, self.vector(*old));
            let mut told = Told::default();
            for new in self.swaps(*old) {
                let score = dot(g, self.vector(*new)) - here;
                let most = best.map_or(f32::NEG_INFINITY, |(most, ..)| most);
                // The part of speech is only asked for where the estimate is the best so far.
                if score > most && self.fits(&sentence, place, *new, &mut told) {
                    best = Some((score, place, *new));
                }
            }
        }
        best.map(|(score, place, new)| (f64::from(score), Edit::replace(place, tokens[place], new)))
    }

    /// Whether a word has the part of speech of the one in its place.
    fn fits(&self, sentence: &[&str], place: usize, new: u32, told: &mut Told) -> bool {
        if !self.rules.part_of_speech {
            return true;
        }
        let part = *told
            .part
            .get_or_insert_with(|| self.tagger.at(sentence, place));
        let same = || {
            let mut changed = sentence.to_vec();
            changed[place] = self.text(new);
            self.tagger.at(&changed, place) == part
        };
        match (part, self.usual[new as usize]) {
            (None, _) => false,
            (_, Some(usual)) => *told.by_usual.entry(usual).or_insert_with(same),
            (_, None) => same(),
        }
    }

    /// Words for the place of another, whatever the sentence, by ids.
    fn swaps(&self, old: u32) -> &[u32] {
        self.swaps[old as usize].get_or_init(|| {
            let text = self.text(old);
            if self.rules.stop_words && is_stop_word(text) {
                return Vec::new();
            }
            let bases = self.lemmas.map(|lemmas| lemmas.of(text));
            let another = |new: &u32| {
                let shared = bases.as_ref().zip(self.lemmas);
                let shared =
                    shared.map(|(bases, lemmas)| !bases.is_disjoint(&lemmas.of(self.text(*new))));
                *new != old && !self.context.special.contains(new) && shared != Some(true)
            };
            let alike = self
                .cosines
                .above(old as usize, self.rules.similarity as f32);
            alike.into_iter().filter(another).collect()
        })
    }

    fn vector(&self, token: u32) -> &[f32] {
        let at = token as usize * self.vectors.dim;
        &self.vectors.data[at..at + self.vectors.dim]
    }

    fn text(&self, token: u32) -> &str {
        self.words.value(token as usize)
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
