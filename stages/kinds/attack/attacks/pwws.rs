//! PWWS, probability weighted word saliency: each word by its best synonym, in the order of what that is worth times how
//! much the word matters.
//!
//! Paper: Ren, Deng, He, Che, "Generating Natural Language Adversarial Examples through Probability Weighted Word
//! Saliency", ACL 2019.
//!
//! ```text
//! saliency of word i:   S(i) = F_y(x) - F_y(x with i unknown)
//! its best synonym:     w(i) = argmax over its synonyms of D(i) = F_y(x) - F_y(x with w for i)
//! for the words by softmax(S)(i) D(i), the largest first:
//!     x[i] = w(i); stop when the prediction changes
//! ```
//!
//! Differs: synonyms are those of the input `synonyms` (connect a dataset stage with name = "wordnet" for the paper's
//! source), without regard to parts of speech unless `same_part_of_speech` is set; named entities are not replaced by
//! others, since there is no recogniser; a synonym that raises F_y is not put in. Rows that the model gets wrong before are left alone.

use nn::numeric::softmax;

use crate::Failure;
use crate::contract::description::{Constant, Param};
use crate::kinds::attack::candidates::synonyms::{
    MAX_CANDIDATES, MAX_WORDS, SynonymCandidates, max_words, word_budget,
};
use crate::kinds::attack::constraints::{SAME_PART_OF_SPEECH, WordConstraints};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::search::word_importance::{Without, ask, by_score, with_each, without};
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::kinds::attack::word_rules::WordRules;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::QUERIES;

const NAME: &str = "pwws";

const PART_OF_SPEECH: Param = SAME_PART_OF_SPEECH.or(Constant::Bool(false));

/// The attack.
pub struct Pwws;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    rules: WordRules<'a>,
    synonyms: SynonymCandidates,
    max_words: usize,
}

/// A place, its best synonym, and what the synonym is worth.
struct Best {
    place: usize,
    word: u32,
    fall: f64,
}

impl Attack for Pwws {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/pwws.rs",
            summary: "Replaces words by their best synonyms, in the order of saliency times effect: PWWS.",
            details: "The order and the synonyms are chosen on the text as it came; then they are put in one after the other until the prediction changes. Rows that the model misclassifies are left alone.",
            paper: "Ren et al. 2019, ACL P19-1103",
            params: &[MAX_WORDS, MAX_CANDIDATES, PART_OF_SPEECH],
            changes: Changes::Words,
            needs: &["vocab", "synonyms"],
            budget: word_budget,
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
        let most = s.int("max_candidates").map_err(failure)?;
        Ok(Box::new(Prepared {
            context,
            rules: WordRules::new(context, constraints(s), NAME)?,
            synonyms: SynonymCandidates::new(context, most, NAME)?,
            max_words: max_words(s).unwrap_or(usize::MAX),
        }))
    }
}

/// Parts of speech are compared in the text as it came, so that `replay`, which makes one edit after the other, would see
/// others: it is not held to them.
fn constraints(s: Settings<'_>) -> WordConstraints {
    WordConstraints {
        part_of_speech: s.flag("same_part_of_speech").unwrap_or(false),
        ..WordConstraints::NONE
    }
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
        let goal = Goal::untargeted(item.label);
        let mut text = tokens.to_vec();
        for best in self
            .ranked(item, &mut trace)?
            .into_iter()
            .take(self.max_words)
        {
            trace.edit(Edit::replace(best.place, text[best.place], best.word))?;
            text[best.place] = best.word;
            let answer = ask(self.context, vec![text.clone()], &mut trace)?;
            if goal.reached(Answer::Probabilities(&answer[0])) {
                break;
            }
        }
        Ok(trace)
    }

    /// The best synonym of each word that has some, in the order in which they are put in.
    fn ranked(&self, item: &Item<'_>, trace: &mut Trace) -> Result<Vec<Best>, Failure> {
        let (tokens, label) = (item.tokens()?, item.label as usize);
        let special = self.context.special;
        let places = (0..tokens.len()).filter(|place| !special.contains(&tokens[*place]));
        let places: Vec<usize> = places.collect();
        let falls = |answers: &[Vec<f32>]| -> Vec<f64> {
            let before = f64::from(item.before[label]);
            let each = answers.iter();
            each.map(|p| before - f64::from(p[label])).collect()
        };
        let unknown = without(self.context, tokens, &places, Without::Unknown, trace)?;
        let mut saliency: Vec<f32> = falls(&unknown.unwrap_or_default())
            .into_iter()
            .map(|fall| fall as f32)
            .collect();
        // As in the paper, over all words of the text.
        softmax(&mut saliency);
        let mut all = Vec::new();
        let mut scores = Vec::new();
        for (place, saliency) in places.into_iter().zip(saliency) {
            let words = self.synonyms.of(self.context, tokens[place]).into_iter();
            let words = words.filter(|new| self.rules.broken(tokens, place, *new).is_none());
            let words: Vec<u32> = words.collect();
            let answers = with_each(self.context, tokens, place, &words, trace)?;
            let falls = falls(&answers);
            let Some((word, fall)) = by_score(words.into_iter().zip(falls.clone()), &falls)
                .into_iter()
                .next()
            else {
                continue;
            };
            scores.push(f64::from(saliency) * fall);
            all.push(Best { place, word, fall });
        }
        let ranked = by_score(all, &scores);
        Ok(ranked.into_iter().filter(|best| best.fall > 0.0).collect())
    }
}
