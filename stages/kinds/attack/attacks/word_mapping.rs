//! Word mapping (P1, section on IMDb): word by word as a text arrives, each becomes one of a few that
//! could stand there, whichever the continuous perturbation points at.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for recurrent
//! neural networks".
//!
//! ```text
//! h2 = h(0);  for each word w(k) with vector x(k):
//!     S = M words like w(k), of its part of speech, by how well they follow w(k-4) .. w(k-1)
//!     x~ = x(k) + d,  d the fixed point of d = alpha B(h2, x(k), d)^T v
//!     z = the word of S with (z - x(k)) . (x~ - x(k)) >= 0 that is nearest to x~; w(k) if there is none
//!     h2 = F(h2, z)
//! ```
//!
//! One pass from left to right; a word is decided once, by what came before it. S is silent on `w(k)` itself: it is
//! in S like any other word (`own_word = false` takes it out), and then often the nearest. A perturbation of 0 changes nothing. With
//! `rule = "exhaustive"` there is no `d`: every word of S is tried, and the one whose next state is worst
//! for the true class stands, or w(k) if none is worse than it. With `rule = "random"`, a control that is not in
//! the paper, any word of S stands, whatever the model says. Differs: an n-gram model, a Brill tagger and
//! a cosine make S where the paper has GPT-2 and NLTK; "nearest to x~" is the paper's text,
//! `nearest_to = "original"` its printed formula.

use ndarray::{Array2, ArrayView1, ArrayView2};
use nn::stepping::{Goal, Limits, Online, OnlineContext, Rule};

use crate::contract::description::Param;
use crate::kinds::attack::candidates::language_model::{Candidates, Taste};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::solver::solver;
use crate::kinds::attack::online::{ALPHA, ITERATIONS, POINTS};
use crate::kinds::attack::trace::{Trace, passes};
use crate::models::entry::Subject;
use crate::models::failure as refused;
use crate::params::settings::{Settings, failure};
use crate::{Failure, ParamError};

const NAME: &str = "word-mapping";

const RULE: Param = Param::choice(
    "rule",
    &["direction", "exhaustive", "random"],
    "direction (the candidate in the direction of the perturbation), exhaustive (the worst candidate for the true class) or random.",
);
const NEAREST_TO: Param = Param::choice(
    "nearest_to",
    &["adversarial", "original"],
    "The candidate nearest to the adversarial vector or to the original one.",
)
.when("rule", BY_DIRECTION);
const CANDIDATES: Param = Param::int(
    "candidates",
    20,
    1,
    "The maximum number of candidates for a word.",
);
const SIMILARITY: Param = Param::float(
    "similarity",
    0.4,
    (-1.0, 1.0),
    "Minimum cosine similarity of a candidate's vector (exclusive).",
);
const OWN_WORD: Param = Param::flag(
    "own_word",
    true,
    "Whether the current word is a candidate like any other; false takes it out, so that it stays only where nothing else fits. With rule = \"exhaustive\" it is always tried.",
)
.when("rule", &["direction", "random"]);
const BY_DIRECTION: &[&str] = &["direction"];

/// How a word is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Direction { nearest: Nearest },
    Exhaustive,
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nearest {
    Adversarial,
    Original,
}

/// The attack.
pub struct WordMapping;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    candidates: Candidates<'a>,
    choice: Choice,
}

impl Choice {
    fn read(s: Settings<'_>) -> Result<Choice, ParamError> {
        let nearest = &[
            ("adversarial", Nearest::Adversarial),
            ("original", Nearest::Original),
        ];
        // Only this rule has it.
        let nearest = match s.text("rule") {
            Some("direction") => s.one_of("nearest_to", nearest)?,
            _ => Nearest::Adversarial,
        };
        let direction = Choice::Direction { nearest };
        let rules = [
            ("direction", direction),
            ("exhaustive", Choice::Exhaustive),
            ("random", Choice::Random),
        ];
        s.one_of("rule", &rules)
    }
}

fn taste(s: Settings<'_>) -> Result<Taste, ParamError> {
    Ok(Taste {
        most: s.int("candidates")?,
        similarity: s.float("similarity")? as f32,
        // The exhaustive rule tries it beside the candidates.
        own_word: s.flag("own_word").unwrap_or(false),
    })
}

impl Attack for WordMapping {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/word_mapping.rs",
            summary: "Replaces words as the text arrives, each by a candidate in the direction of the perturbation.",
            details: "The candidate nearest to its vector after the perturbation of fixed-point, among those that lie where it went; or with `rule = \"exhaustive\"` the candidate that is worst for the true class, or with `rule = \"random\"` any candidate.",
            paper: "Deka, Stipanovic, Tomlin: Dynamically computed adversarial perturbations for recurrent neural networks",
            params: const {
                &[
                    RULE,
                    NEAREST_TO,
                    CANDIDATES,
                    SIMILARITY,
                    OWN_WORD,
                    ALPHA.when("rule", BY_DIRECTION),
                    POINTS.when("rule", BY_DIRECTION),
                    ITERATIONS.when("rule", BY_DIRECTION),
                ]
            },
            changes: Changes::Words,
            victims: Victims::Recurrent,
            needs: &["language", "vocab"],
            budget: |s| {
                let cosine = s.maybe_float("similarity");
                cosine.map_or(Budget::Unlimited, Budget::Similarity)
            },
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, settings: Settings<'_>) -> bool {
        matches!(Choice::read(settings), Ok(Choice::Random))
    }

    fn draws_with(&self) -> Option<&'static str> {
        Some("take rule = \"random\"")
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let settings = context.settings();
        let taste = taste(settings).map_err(failure)?;
        Ok(Box::new(Prepared {
            candidates: Candidates::new(NAME, context, taste)?,
            choice: Choice::read(settings).map_err(failure)?,
            context,
        }))
    }
}

/// No perturbation: candidates are tried one by one instead.
struct Still;

impl Rule<f32> for Still {
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, f32>) -> nn::Result<Array2<f32>> {
        Ok(Array2::zeros(now.inputs().dim()))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let Subject::Network(network) = self.context.subject else {
            return Err(
                Failure::new(format!("the attack `{NAME}` needs a recurrent network"))
                    .help("connect a train stage with model = \"rnn\", \"gru\" or \"lstm\""),
            );
        };
        let (model, weights) = network.parts();
        // The longest first, so that those still going are always the first ones.
        let mut places: Vec<usize> = (0..items.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(items[*place].input.len()));
        let texts = places.iter().map(|place| items[*place].tokens());
        let texts: Vec<&[u32]> = texts.collect::<Result<_, _>>()?;
        let goals = places
            .iter()
            .map(|place| Goal::leave(items[*place].label as usize));
        let rule: Box<dyn Rule<f32>> = match self.choice {
            Choice::Direction { .. } => Box::new(solver(self.context.settings())?),
            Choice::Exhaustive | Choice::Random => Box::new(Still),
        };
        let none = Limits::default();
        let online = Online::new(model, weights, rule, goals.collect(), none);
        let mut online = online.map_err(refused)?;
        let streams = places
            .iter()
            .map(|place| self.context.stream(NAME, &items[*place]));
        let streams: Vec<nn::Stream> = streams.collect();
        let mut edits: Vec<Vec<Edit>> = vec![Vec::new(); texts.len()];
        for k in 0..texts.first().map_or(0, |text| text.len()) {
            let left = texts.iter().take_while(|text| text.len() > k).count();
            online.keep(left);
            let old: Vec<u32> = texts[..left].iter().map(|text| text[k]).collect();
            let sets = texts[..left].iter().map(|text| self.set(text, k));
            let sets: Vec<Vec<u32>> = sets.collect();
            let mut new = old.clone();
            let samples = self.vectors(&old);
            let read = online.push_as(samples.view(), &mut |now, moved| {
                new = match self.choice {
                    Choice::Direction { nearest } => self.pointed(&old, &sets, moved, nearest),
                    Choice::Exhaustive => self.worst(&old, &sets, now)?,
                    Choice::Random => any(&old, &sets, &streams, k),
                };
                Ok(self.vectors(&new))
            });
            read.map_err(refused)?;
            for (edits, (old, new)) in edits.iter_mut().zip(old.into_iter().zip(new)) {
                if new != old {
                    edits.push(Edit::replace(k, old, new));
                }
            }
        }
        let mut traces: Vec<Trace> = items.iter().map(Trace::untouched).collect();
        let bills = online.bill().iter().zip(edits);
        for (place, (bill, edits)) in places.into_iter().zip(bills) {
            traces[place] = Trace {
                counters: passes(bill.forwards, bill.backwards),
                ..Trace::of(&items[place], edits)?
            };
        }
        Ok(traces)
    }
}

/// Of each set any word, by the numbers of its item.
fn any(old: &[u32], sets: &[Vec<u32>], streams: &[nn::Stream], k: usize) -> Vec<u32> {
    let one = |((old, set), stream): ((&u32, &Vec<u32>), &nn::Stream)| match set.len() {
        0 => *old,
        words => set[stream.below(k as u64, words)],
    };
    old.iter().zip(sets).zip(streams).map(one).collect()
}

impl Prepared<'_> {
    /// What could stand at `k`; nothing for padding and unknown words.
    fn set(&self, text: &[u32], k: usize) -> Vec<u32> {
        match self.context.special.contains(&text[k]) {
            true => Vec::new(),
            false => self.candidates.of(&text[..k], text[k]),
        }
    }

    /// Of each set the word nearest to the perturbed vector, or to the word's own, among those that lie where it went.
    fn pointed(
        &self,
        old: &[u32],
        sets: &[Vec<u32>],
        moved: ArrayView2<'_, f32>,
        nearest: Nearest,
    ) -> Vec<u32> {
        let wide = |x: &f32| f64::from(*x);
        let one = |((old, set), moved): ((&u32, &Vec<u32>), ArrayView1<'_, f32>)| {
            let x: Vec<f64> = self.vector(*old).iter().map(wide).collect();
            let moved: Vec<f64> = moved.iter().map(wide).collect();
            if moved == x {
                return *old;
            }
            let to = if nearest == Nearest::Original {
                &x
            } else {
                &moved
            };
            let mut best: Option<(f64, u32)> = None;
            // The word itself first: it wins a tie against another with the same vector.
            let own = set.iter().filter(|token| *token == old);
            for token in own.chain(set) {
                let z = self.vector(*token).iter().map(wide);
                let (mut along, mut distance) = (0.0, 0.0);
                for (((z, x), moved), to) in z.zip(&x).zip(&moved).zip(to) {
                    along += (z - x) * (moved - x);
                    distance += (z - to) * (z - to);
                }
                let nearer = best.is_none_or(|(least, _)| distance < least);
                if along >= 0.0 && nearer {
                    best = Some((distance, *token));
                }
            }
            best.map_or(*old, |(_, token)| token)
        };
        let rows = moved.outer_iter();
        old.iter().zip(sets).zip(rows).map(one).collect()
    }

    /// Of each set, and the word itself, the one after which the goal has the best odds; the first of equals.
    fn worst(
        &self,
        old: &[u32],
        sets: &[Vec<u32>],
        now: &mut OnlineContext<'_, '_, f32>,
    ) -> nn::Result<Vec<u32>> {
        let pairs = old.iter().zip(sets).enumerate();
        let tried = pairs.filter(|(_, (_, set))| !set.is_empty());
        let tried: Vec<(usize, u32)> = tried
            .flat_map(|(item, (old, set))| {
                let words = std::iter::once(old).chain(set);
                words.map(move |token| (item, *token))
            })
            .collect();
        let which: Vec<usize> = tried.iter().map(|(item, _)| *item).collect();
        let tokens: Vec<u32> = tried.iter().map(|(_, token)| *token).collect();
        let odds = now.odds(&which, self.vectors(&tokens).view())?;
        let mut best: Vec<Option<f64>> = vec![None; old.len()];
        let mut new = old.to_vec();
        for ((item, token), odds) in tried.into_iter().zip(odds) {
            if best[item].is_none_or(|most| odds > most) {
                best[item] = Some(odds);
                new[item] = token;
            }
        }
        Ok(new)
    }

    /// The vectors of some tokens, (tokens, dim).
    fn vectors(&self, tokens: &[u32]) -> Array2<f32> {
        let vectors = tokens.iter().flat_map(|token| self.vector(*token));
        let vectors: Vec<f32> = vectors.copied().collect();
        let dim = vectors.len() / tokens.len().max(1);
        Array2::from_shape_vec((tokens.len(), dim), vectors).expect("vectors of one length")
    }

    fn vector(&self, token: u32) -> &[f32] {
        self.candidates.vector(token)
    }
}
