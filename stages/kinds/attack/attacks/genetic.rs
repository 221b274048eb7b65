//! A genetic search over synonyms.
//!
//! Paper: Alzantot, Sharma, Elgohary, Ho, Srivastava, Chang, "Generating Natural Language Adversarial Examples",
//! arXiv:1804.07998.
//!
//! ```text
//! perturb(x):  a random word, likelier the more synonyms it has, by the synonym with the least F_y
//! population:  perturb(x), `population` times
//! `generations` times:
//!     the best (least F_y) changes the prediction? stop
//!     the next population: the best, and children: each word from one of two parents, drawn by 1 - F_y; perturbed
//! ```
//!
//! Differs: synonyms are those of the input `synonyms`, in its order, where the authors take neighbours of counter-fitted
//! vectors; candidates are not filtered by a language model; a child with more changed words than `max_share` allows
//! takes some of them back; a word may also stay as it is if none of its synonyms is better. Rows that the model gets wrong before are left alone.

use nn::Stream;

use crate::Failure;
use crate::contract::description::{Constant, Param};
use crate::kinds::attack::candidates::synonyms::{MAX_CANDIDATES, SynonymCandidates};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::search::word_importance::ask;
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::params::settings::{Settings, failure};
use crate::tables::examples::QUERIES;

const NAME: &str = "genetic";

const POPULATION: Param = Param::int("population", 60, 2, "How many texts are bred at a time.");
const GENERATIONS: Param = Param::int("generations", 20, 1, "How often they are bred.");
const MAX_SHARE: Param = Param::float(
    "max_share",
    0.2,
    (1e-6, 1.0),
    "The maximum fraction of a row's words that are replaced; rounded down, and at least 1.",
);

const CANDIDATES: Param = MAX_CANDIDATES.or(Constant::Int(8));

/// The attack.
pub struct Genetic;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    synonyms: SynonymCandidates,
    population: usize,
    generations: usize,
    share: f64,
}

/// What may be changed of an item.
struct Ground<'i> {
    tokens: &'i [u32],
    label: usize,
    /// Places with the words that may stand there.
    places: Vec<(usize, Vec<u32>)>,
    /// How many words may be changed.
    most: usize,
}

/// One text, and what the model says of it.
#[derive(Clone)]
struct Member {
    text: Vec<u32>,
    p: Vec<f32>,
}

impl Attack for Genetic {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/genetic.rs",
            summary: "Breeds texts with synonyms: a genetic search.",
            details: "Each generation keeps its best text; the others are children of two texts, with one more word replaced by its best synonym. Rows that the model misclassifies are left alone.",
            paper: "Alzantot et al. 2018, arXiv:1804.07998",
            params: &[POPULATION, GENERATIONS, CANDIDATES, MAX_SHARE],
            changes: Changes::Words,
            needs: &["vocab", "synonyms"],
            budget: |s| {
                let share = s.maybe_float("max_share");
                share.map_or(Budget::Unlimited, Budget::WordShare)
            },
            counters: &[QUERIES],
            group: |_| 1,
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        let most = s.int("max_candidates").map_err(failure)?;
        Ok(Box::new(Prepared {
            context,
            synonyms: SynonymCandidates::new(context, most, NAME)?,
            population: s.int("population").map_err(failure)?,
            generations: s.int("generations").map_err(failure)?,
            share: s.float("max_share").map_err(failure)?,
        }))
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
        let ground = self.ground(item)?;
        if ground.places.is_empty() {
            return Ok(trace);
        }
        let goal = Goal::untargeted(item.label);
        let stream = self.context.stream(NAME, item);
        let first = Member {
            text: ground.tokens.to_vec(),
            p: item.before.clone(),
        };
        let mut members = vec![first; self.population];
        for generation in 0..=self.generations as u64 {
            let stream = stream.item(generation);
            if generation > 0 {
                members = ground.bred(&members, &stream);
            }
            // The best of the last generation comes first, and stays as it is.
            let kept = usize::from(generation > 0);
            self.perturb(&ground, &mut members[kept..], &stream, &mut trace)?;
            if goal.reached(Answer::Probabilities(&ground.best(&members).p)) {
                break;
            }
        }
        let best = &ground.best(&members).text;
        let pairs = ground.tokens.iter().zip(best).enumerate();
        for (place, (old, new)) in pairs.filter(|(_, (old, new))| old != new) {
            trace.edit(Edit::replace(place, *old, *new))?;
        }
        Ok(trace)
    }

    fn ground<'i>(&self, item: &Item<'i>) -> Result<Ground<'i>, Failure> {
        let tokens = item.tokens()?;
        let words = |place: usize| {
            let words = self.synonyms.of(self.context, tokens[place]);
            let word = !self.context.special.contains(&tokens[place]);
            (word && !words.is_empty()).then_some((place, words))
        };
        let written = tokens.iter().filter(|token| **token != self.context.pad);
        Ok(Ground {
            tokens,
            label: item.label as usize,
            places: (0..tokens.len()).filter_map(words).collect(),
            most: ((written.count() as f64 * self.share) as usize).max(1),
        })
    }

    /// Replaces a random word of each text by its best synonym. The model is asked about all of them at once.
    fn perturb(
        &self,
        ground: &Ground<'_>,
        members: &mut [Member],
        stream: &Stream,
        trace: &mut Trace,
    ) -> Result<(), Failure> {
        let mut texts = Vec::new();
        let mut counts = Vec::with_capacity(members.len());
        for (n, member) in members.iter().enumerate() {
            let point = stream.item(n as u64).uniform(0);
            let (place, words) = ground.drawn(&member.text, point);
            let place = *place;
            // Its own word is among them, so that every text is one that the model was asked about.
            let words = words.iter().copied().chain([member.text[place]]);
            let before = texts.len();
            texts.extend(words.map(|word| {
                let mut text = member.text.clone();
                text[place] = word;
                text
            }));
            counts.push(texts.len() - before);
        }
        let answers = ask(self.context, texts.clone(), trace)?;
        let mut tried = texts.into_iter().zip(answers);
        for (member, count) in members.iter_mut().zip(counts) {
            let tried: Vec<Member> = tried
                .by_ref()
                .take(count)
                .map(|(text, p)| Member { text, p })
                .collect();
            *member = ground.best(&tried).clone();
        }
        Ok(())
    }
}

impl Ground<'_> {
    /// The text with the least probability of the true class; the first of equals.
    fn best<'m>(&self, members: &'m [Member]) -> &'m Member {
        let mut best = &members[0];
        for member in members {
            if member.p[self.label] < best.p[self.label] {
                best = member;
            }
        }
        best
    }

    fn changed(&self, text: &[u32]) -> Vec<usize> {
        let places = (0..text.len()).filter(|place| text[*place] != self.tokens[*place]);
        places.collect()
    }

    /// A place that may be changed, likelier the more words may stand there. `point` is between 0 and 1.
    fn drawn(&self, text: &[u32], point: f64) -> &(usize, Vec<u32>) {
        let full = self.changed(text).len() >= self.most;
        let open = |place: usize| !full || text[place] != self.tokens[place];
        let weight = |(place, words): &(usize, Vec<u32>)| match open(*place) {
            true => words.len() as f64,
            false => 0.0,
        };
        let weights: Vec<f64> = self.places.iter().map(weight).collect();
        &self.places[pick(&weights, point)]
    }

    /// The best text, and children, which have not been asked about yet: their answers are a parent's.
    fn bred(&self, members: &[Member], stream: &Stream) -> Vec<Member> {
        let fitness = members.iter().map(|m| 1.0 - f64::from(m.p[self.label]));
        let fitness: Vec<f64> = fitness.collect();
        let mut next = vec![self.best(members).clone()];
        for n in 1..members.len() as u64 {
            let stream = stream.item(n).item(1);
            let [one, other] = [0, 1].map(|k| &members[pick(&fitness, stream.uniform(k))]);
            let pairs = one.text.iter().zip(&other.text).zip(2_u64..);
            let text = pairs.map(|((a, b), k)| if stream.uniform(k) < 0.5 { *a } else { *b });
            let mut text: Vec<u32> = text.collect();
            let mut changed = self.changed(&text);
            let taken = stream.item(2);
            while changed.len() > self.most {
                let n = taken.below(changed.len() as u64, changed.len());
                let place = changed.remove(n);
                text[place] = self.tokens[place];
            }
            next.push(Member {
                text,
                p: one.p.clone(),
            });
        }
        next
    }
}

/// An index with a probability proportional to its weight; the first if all are 0.
fn pick(weights: &[f64], point: f64) -> usize {
    let total: f64 = weights.iter().sum();
    let mut left = point * total;
    let mut last = 0;
    for (n, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        last = n;
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_are_proportional_to_weights() {
        let weights = [1.0, 0.0, 3.0];
        assert_eq!(pick(&weights, 0.0), 0);
        assert_eq!(pick(&weights, 0.24), 0);
        assert_eq!(pick(&weights, 0.26), 2);
        assert_eq!(pick(&weights, 0.999_999), 2);
        assert_eq!(pick(&[0.0, 0.0], 0.5), 0);
    }
}
