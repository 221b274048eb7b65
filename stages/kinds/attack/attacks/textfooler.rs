//! TextFooler: the most important words are replaced by synonyms, one after the other.
//!
//! Paper: Jin, Jin, Zhou, Szolovits, "Is BERT Really Robust? A Strong Baseline for Natural Language Attack on Text
//! Classification and Entailment", arXiv:1907.11932.
//!
//! ```text
//! importance of word i: F_y(x) - F_y(x without i), and if that is predicted as c, also F_c(x without i) - F_c(x)
//! for the words that are not stop words, the most important first:
//!     C = its synonyms with its part of speech in this sentence, with which the text stays like the original
//!     some of C change the prediction? the one with the text most like the original, and stop
//!     otherwise the one with the least F_y, if that is less than now
//! ```
//!
//! Differs: texts are compared by the means of their words' vectors (the input `vectors`), where the authors take the
//! Universal Sentence Encoder, so that a threshold of theirs means something else here; synonyms are those of the input
//! `synonyms`, which has its own threshold of similarity; `harper-brill` tags. Rows that the model gets wrong before are
//! left alone.

use std::cmp::Ordering;

use nn::linear::Vectors;
use nn::numeric::argmax;

use crate::Failure;
use crate::contract::description::{Constant, Param};
use crate::kinds::attack::candidates::synonyms::{
    MAX_CANDIDATES, MAX_WORDS, SynonymCandidates, max_words, word_budget,
};
use crate::kinds::attack::constraints::{
    KEEP_STOP_WORDS, SAME_PART_OF_SPEECH, SENTENCE_SIMILARITY, WordConstraints,
};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::search::word_importance::{Without, by_score, with_each, without};
use crate::kinds::attack::sentence::Compared;
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::kinds::attack::word_rules::WordRules;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::QUERIES;

const NAME: &str = "textfooler";

const CANDIDATES: Param = MAX_CANDIDATES.or(Constant::Int(50));

/// The attack.
pub struct TextFooler;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    rules: WordRules<'a>,
    synonyms: SynonymCandidates,
    /// What texts are compared by, and how alike they must be.
    sentences: Option<(&'a Vectors, f64)>,
    max_words: usize,
}

impl Attack for TextFooler {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/textfooler.rs",
            summary: "Replaces the most important words by synonyms, one after the other: TextFooler.",
            details: "A word is as important as the probability of the true class falls when it is deleted. Synonyms keep the part of speech, and the text stays like the original by the means of its words' vectors; stop words stay. Rows that the model misclassifies are left alone.",
            paper: "Jin et al. 2019, arXiv:1907.11932",
            params: &[
                MAX_WORDS,
                CANDIDATES,
                SENTENCE_SIMILARITY,
                SAME_PART_OF_SPEECH,
                KEEP_STOP_WORDS,
            ],
            changes: Changes::Words,
            needs: &["vocab", "synonyms"],
            needs_with: |s| constraints(s).map_or(Vec::new(), |rules| rules.needs()),
            budget: word_budget,
            constraints,
            counters: &[QUERIES],
            group: |_| 4,
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        let rules = constraints(s).expect("it always has some");
        let sentences = match rules.sentence > -1.0 {
            true => Some((context.connected(NAME)?, rules.sentence)),
            false => None,
        };
        let most = s.int("max_candidates").map_err(failure)?;
        Ok(Box::new(Prepared {
            context,
            rules: WordRules::new(context, rules, NAME)?,
            synonyms: SynonymCandidates::new(context, most, NAME)?,
            sentences,
            max_words: max_words(s).unwrap_or(usize::MAX),
        }))
    }
}

fn constraints(s: Settings<'_>) -> Option<WordConstraints> {
    Some(WordConstraints {
        sentence: s.maybe_float(SENTENCE_SIMILARITY.name).unwrap_or(-1.0),
        part_of_speech: s.flag("same_part_of_speech").unwrap_or(true),
        stop_words: s.flag("keep_stop_words").unwrap_or(true),
        ..WordConstraints::NONE
    })
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        each_correct(items, |item| self.one(item))
    }
}

impl Prepared<'_> {
    fn one(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let mut trace = Trace::of(item, Vec::new())?;
        trace.count(QUERIES, 0);
        let tokens = item.tokens()?;
        let label = item.label as usize;
        let goal = Goal::untargeted(item.label);
        let pad = self.context.pad;
        let compared = self.sentences.map(|(vectors, least)| {
            let compared = Compared::new(vectors, tokens, pad);
            (compared, least)
        });
        let mut text = tokens.to_vec();
        let mut now = item.before[label];
        for place in self.places(item, &mut trace)? {
            if trace.edits.len() == self.max_words {
                break;
            }
            let old = text[place];
            let tried = self.candidates(&text, place, compared.as_ref());
            let words: Vec<u32> = tried.iter().map(|(word, _)| *word).collect();
            let answers = with_each(self.context, &text, place, &words, &mut trace)?;
            let reached = |n: &usize| goal.reached(Answer::Probabilities(&answers[*n]));
            let alike = |a: &usize, b: &usize| {
                let order = tried[*a].1.total_cmp(&tried[*b].1);
                // Of equals the first.
                order.then(b.cmp(a))
            };
            let won = (0..words.len()).filter(reached).max_by(alike);
            let worst = (0..words.len()).min_by(|a, b| {
                let order = answers[*a][label].total_cmp(&answers[*b][label]);
                order.then(Ordering::Less)
            });
            let better = worst.filter(|n| answers[*n][label] < now);
            let Some(n) = won.or(better) else { continue };
            trace.edit(Edit::replace(place, old, words[n]))?;
            text[place] = words[n];
            now = answers[n][label];
            if won.is_some() {
                break;
            }
        }
        Ok(trace)
    }

    /// The places of words that may be replaced, the most important first.
    fn places(&self, item: &Item<'_>, trace: &mut Trace) -> Result<Vec<usize>, Failure> {
        let tokens = item.tokens()?;
        let word = |place: &usize| {
            let token = tokens[*place];
            !self.context.special.contains(&token) && self.rules.replaceable(token)
        };
        let places: Vec<usize> = (0..tokens.len()).filter(word).collect();
        let answers = without(self.context, tokens, &places, Without::Deleted, trace)?;
        let Some(answers) = answers else {
            return Ok(places);
        };
        let label = item.label as usize;
        let before = |class: usize| f64::from(item.before[class]);
        let score = |p: &Vec<f32>| {
            let fall = before(label) - f64::from(p[label]);
            match argmax(p) {
                class if class != label => fall + f64::from(p[class]) - before(class),
                _ => fall,
            }
        };
        let scores: Vec<f64> = answers.iter().map(score).collect();
        Ok(by_score(places, &scores))
    }

    /// The words that may stand in a place, each with how like the original the text is then.
    fn candidates(
        &self,
        text: &[u32],
        place: usize,
        compared: Option<&(Compared<'_>, f64)>,
    ) -> Vec<(u32, f64)> {
        let mut changed = text.to_vec();
        let words = self.synonyms.of(self.context, text[place]).into_iter();
        let words = words.filter(|new| self.rules.broken(text, place, *new).is_none());
        let scored = words.map(|new| {
            changed[place] = new;
            (new, compared.map(|(compared, _)| compared.with(&changed)))
        });
        let least = compared.map_or(-1.0, |(_, least)| *least);
        let scored = scored.filter(|(_, alike)| alike.is_none_or(|alike| alike > least));
        scored
            .map(|(new, alike)| (new, alike.unwrap_or_default()))
            .collect()
    }
}
