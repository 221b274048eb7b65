//! A few words for others, one after the other: GS-EC with a budget of words (P3, table 7).
//!
//! Paper: Hsieh, Cheng, Juan, Wei, Hsu, Hsieh, "On the Robustness of Self-Attentive Models", ACL 2019, section 5.3. With
//! a keyword-detector as the victim it is their targeted keyword attack on translators. `objective(x)` is the logit of
//! the best other class minus that of the true one: of a keyword-detector, Seq2Sick's objective.
//!
//! ```text
//! at most max_words times:
//!     i = argmax of objective(x with a zero vector at i), over the words that were not replaced yet
//!     for candidates w in ascending L1 distance of the sentence's vectors with w at i and without:
//!         x[i] = w; if another class is predicted: done
//!     x[i] = the candidate of the largest objective, even if that is lower than before
//! ```
//!
//! A row stays as it is if the prediction does not change in the end. Rows that the model gets wrong before are left
//! alone: for a keyword-detector, sentences whose translation has the keyword already.

use nn::batch::Sequence;
use nn::numeric::softmax;

use crate::contract::description::Param;
use crate::kinds::attack::candidates::words::Words;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack, Victims};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::search::select_replace::l1;
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::params::settings::{Settings, failure};
use crate::tables::examples::FORWARD;
use crate::{Failure, models};

const NAME: &str = "replace-words";

const MAX_WORDS: Param = Param::int(
    "max_words",
    3,
    1,
    "The maximum number of words that are replaced.",
);
const MAX_CANDIDATES: Param = Param::int(
    "max_candidates",
    0,
    0,
    "The maximum number of candidates that are tried in a place, the nearest ones; 0 = all.",
);

/// Candidates that the model is asked about at once.
const BATCH: usize = 64;
/// Candidates whose sentences' vectors are computed at once: all of a large vocabulary would take much memory.
const VECTORS: usize = 1024;

/// The attack.
pub struct ReplaceWords;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    words: Words,
    max_words: usize,
    max_candidates: usize,
}

/// A text under attack.
struct Text<'i> {
    tokens: Vec<u32>,
    item: &'i Item<'i>,
    goal: Goal,
}

impl Attack for ReplaceWords {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/replace_words.rs",
            summary: "Replaces a few words, one after the other, each where and by what moves the prediction most.",
            details: "The place is where a zero vector brings another class nearest; candidates are tried from the one that changes the sentence's vector least, until the prediction changes. If none changes it, the best one stays and the next word is replaced. Candidates are the whole vocabulary, or those of the input `candidates`. A row stays as it is if the prediction never changes. Rows that the model misclassifies are left alone.",
            paper: "Hsieh et al. 2019, ACL",
            params: &[MAX_WORDS, MAX_CANDIDATES],
            changes: Changes::Words,
            victims: Victims::Vectors,
            needs: &["vocab"],
            takes_candidates: true,
            pairs: true,
            budget: |s: Settings<'_>| {
                s.maybe_int(MAX_WORDS.name)
                    .map_or(Budget::Unlimited, Budget::Words)
            },
            group: |_| 2,
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let settings = context.settings();
        let most = settings.int(MAX_CANDIDATES.name).map_err(failure)?;
        let prepared = Prepared {
            words: Words::new(context, NAME)?,
            max_words: settings.int(MAX_WORDS.name).map_err(failure)?,
            max_candidates: if most > 0 { most } else { usize::MAX },
            context,
        };
        prepared.probe()?;
        Ok(Box::new(prepared))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        each_correct(items, |item| self.one(item))
    }
}

impl Prepared<'_> {
    /// Asks about one word what the attack will ask: a model that cannot answer is refused before anything is attacked.
    fn probe(&self) -> Result<(), Failure> {
        let victim = self.context.subject.victim();
        let word = self.words.any();
        let text = Sequence::Tokens(vec![word]);
        let asked = victim.without(&[word], &[0]);
        let asked = asked.and_then(|_| victim.sentences(&[&text]));
        asked.map(drop).map_err(|error| {
            models::failure(error).help(format!(
                "`{NAME}` needs the vectors of words and sentences: connect `victim` to a network or a keyword-detector"
            ))
        })
    }

    fn one(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let mut text = Text {
            tokens: item.tokens()?.to_vec(),
            item,
            goal: Goal::untargeted(item.label),
        };
        let mut trace = Trace::of(item, Vec::new())?;
        let mut open = self.words.places(&text.tokens);
        for _ in 0..self.max_words {
            let Some(place) = self.place(&text, &open, &mut trace)? else {
                break;
            };
            open.retain(|other| *other != place);
            let Some((word, reached)) = self.word(&text, place, &mut trace)? else {
                continue;
            };
            trace.edit(Edit::replace(place, text.tokens[place], word))?;
            text.tokens[place] = word;
            if reached {
                return Ok(trace);
            }
        }
        Ok(Trace {
            counters: trace.counters,
            ..Trace::of(item, Vec::new())?
        })
    }

    /// The first place where a zero vector raises the objective most.
    fn place(
        &self,
        text: &Text<'_>,
        open: &[usize],
        trace: &mut Trace,
    ) -> Result<Option<usize>, Failure> {
        if open.is_empty() {
            return Ok(None);
        }
        let victim = self.context.subject.victim();
        let answers = victim
            .without(&text.tokens, open)
            .map_err(models::failure)?;
        trace.count(FORWARD, open.len() as u64);
        let scores = answers.into_iter().map(|logits| {
            let logits = logits.into_raw_vec_and_offset().0;
            text.objective(&logits)
        });
        let best = first_of_the_largest(open.iter().copied().zip(scores));
        Ok(best.map(|(place, _)| place))
    }

    /// The nearest word that reaches the goal, or the one of the largest objective; and whether it does.
    fn word(
        &self,
        text: &Text<'_>,
        place: usize,
        trace: &mut Trace,
    ) -> Result<Option<(u32, bool)>, Failure> {
        let victim = self.context.subject.victim();
        let mut best: Option<(u32, f64)> = None;
        for batch in self.nearest_first(text, place, trace)?.chunks(BATCH) {
            let answers = victim.substituted(&text.tokens, place, batch);
            let answers = answers.map_err(models::failure)?;
            trace.count(FORWARD, batch.len() as u64);
            for (word, answer) in batch.iter().zip(answers) {
                let mut p = answer.logits.clone();
                softmax(&mut p);
                if text.goal.reached(Answer::Probabilities(&p)) {
                    return Ok(Some((*word, true)));
                }
                let one = (*word, text.objective(&answer.logits));
                best = first_of_the_largest(best.into_iter().chain([one]));
            }
        }
        Ok(best.map(|(word, _)| (word, false)))
    }

    /// The candidates of a place that are tried, those first that change the sentence's vector least; of equals the
    /// lower id.
    fn nearest_first(
        &self,
        text: &Text<'_>,
        place: usize,
        trace: &mut Trace,
    ) -> Result<Vec<u32>, Failure> {
        let victim = self.context.subject.victim();
        let with = |word: u32| {
            let mut tokens = text.tokens.clone();
            tokens[place] = word;
            Sequence::Tokens(tokens)
        };
        let vectors = |words: &[u32]| {
            let texts: Vec<Sequence> = words.iter().map(|word| with(*word)).collect();
            let texts: Vec<&Sequence> = texts.iter().collect();
            victim.sentences(&texts).map_err(models::failure)
        };
        let old = text.tokens[place];
        let before = vectors(&[old])?.remove(0);
        let words = self.words.others(old);
        let mut distances = Vec::with_capacity(words.len());
        for part in words.chunks(VECTORS) {
            let after = vectors(part)?;
            let each = part.iter().zip(&after);
            distances.extend(each.map(|(word, after)| (l1(&before, after), *word)));
        }
        trace.count(FORWARD, words.len() as u64 + 1);
        distances.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let nearest = distances.into_iter().map(|(_, word)| word);
        Ok(nearest.take(self.max_candidates).collect())
    }
}

impl Text<'_> {
    /// The logit of the best other class minus that of the true one.
    fn objective(&self, logits: &[f32]) -> f64 {
        let label = self.item.label as usize;
        let others = logits
            .iter()
            .enumerate()
            .filter(|(class, _)| *class != label);
        let best = others.map(|(_, z)| f64::from(*z));
        best.fold(f64::NEG_INFINITY, f64::max) - f64::from(logits[label])
    }
}

fn first_of_the_largest<T>(scored: impl IntoIterator<Item = (T, f64)>) -> Option<(T, f64)> {
    let larger = |best: (T, f64), next: (T, f64)| match next.1 > best.1 {
        true => next,
        false => best,
    };
    scored.into_iter().reduce(larger)
}
