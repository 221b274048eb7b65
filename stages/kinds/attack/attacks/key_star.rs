//! Key*: random flips of characters, the best of a few at each step. The black-box adversary of HotFlip.
//!
//! Paper: Ebrahimi et al. 2018, section 4, which says only that it is greedy and random.
//!
//! ```text
//! at most r times:
//!     draw `queries` random legal flips, ask the model about each
//!     one of them is misclassified with the confidence? stop there
//!     keep the one with the largest loss, even if the loss falls
//! ```
//!
//! With 10 queries it asks as often as a beam of width 10. `mode = "one-shot"` makes r random legal flips without
//! asking: black-box adversarial training. It also changes rows that are misclassified already.

use nn::Stream;
use nn::batch::Sequence;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::candidates::characters::{
    BUDGET, CONFIDENCE, GridText, MODE, Spelling, budget, characters_in, random_flip,
};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::known_words;
use crate::kinds::attack::trace::{Milestones, Trace};
use crate::models::loaded::probabilities;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::FORWARD;

const QUERIES: Param = Param::int(
    "queries",
    10,
    1,
    "The number of random flips that the model is asked about at each step.",
)
.when("mode", &["search"]);

/// The attack.
pub struct KeyStar;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    spelling: Spelling<'a>,
    one_shot: bool,
    queries: usize,
    share: f64,
    confidence: f32,
}

impl Attack for KeyStar {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "key-star",
            file: "stages/kinds/attack/attacks/key_star.rs",
            summary: "Flips characters at random, the best of a few at each step: the black-box adversary of HotFlip.",
            details: "The flips are legal as those of hotflip are. The one with the largest loss is kept, even if the loss falls.",
            paper: "Ebrahimi et al. 2018, arXiv:1712.06751",
            params: &[MODE, QUERIES, BUDGET, CONFIDENCE],
            changes: Changes::Characters,
            needs: &["vocab", known_words::PORT],
            budget: |s| {
                s.maybe_float("budget")
                    .map_or(Budget::Unlimited, Budget::CharacterShare)
            },
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn asks_before(&self, s: Settings<'_>) -> bool {
        s.text("mode") != Some("one-shot")
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        Ok(Box::new(Prepared {
            context,
            spelling: Spelling::new(context, "key-star", false)?,
            one_shot: s.text("mode") == Some("one-shot"),
            queries: s.maybe_int("queries").unwrap_or(1),
            share: s.float("budget").map_err(failure)?,
            confidence: s.float("confidence").map_err(failure)? as f32,
        }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        if self.one_shot {
            return items.iter().map(|item| self.at_once(item)).collect();
        }
        let mut walks: Vec<Walk> = items
            .iter()
            .map(|item| self.begin(item))
            .collect::<Result<_, _>>()?;
        while walks.iter().any(|walk| walk.left > 0) {
            self.step(items, &mut walks)?;
        }
        Ok(walks.into_iter().map(Walk::end).collect())
    }
}

/// An item on its way.
struct Walk {
    trace: Trace,
    goal: Goal,
    milestones: Milestones,
    /// Edits that it may still have.
    left: usize,
}

impl Walk {
    fn end(self) -> Trace {
        Trace {
            firsts: self.milestones.reached,
            ..self.trace
        }
    }

    /// Goes on from one of the texts that the model was asked about.
    fn go(&mut self, tried: Vec<(Edit, Trace)>, answers: &[Vec<f32>], label: u32) {
        self.trace.count(FORWARD, tried.len() as u64);
        let counters = self.trace.counters.clone();
        for ((_, trace), p) in tried.iter().zip(answers) {
            self.milestones
                .see(Answer::Probabilities(p), trace, &counters);
        }
        let reached = |p: &Vec<f32>| self.goal.reached(Answer::Probabilities(p));
        let first = answers.iter().position(reached);
        // The largest loss is the least probability of the true class; the first of equals.
        let of_truth = |n: &usize| answers[*n][label as usize];
        let worst = (0..answers.len()).min_by(|a, b| of_truth(a).total_cmp(&of_truth(b)));
        match first.or(worst) {
            Some(chosen) => {
                let (_, trace) = tried.into_iter().nth(chosen).expect("one of them");
                self.trace = Trace { counters, ..trace };
                self.left = if first.is_some() { 0 } else { self.left - 1 };
            }
            // No flip is legal any more.
            None => self.left = 0,
        }
    }
}

impl Prepared<'_> {
    fn begin(&self, item: &Item<'_>) -> Result<Walk, Failure> {
        let goal = Goal::confident(item.label, self.confidence);
        // A row that is misclassified is left alone.
        let (trace, left) = match item.right() {
            true => (Trace::of(item, Vec::new())?, self.budget(item)),
            false => (Trace::untouched(item), 0),
        };
        Ok(Walk {
            trace,
            milestones: Milestones::of(&goal),
            goal,
            left,
        })
    }

    /// One more flip of every item that is on its way: the model is asked about all of them at once.
    fn step(&self, items: &[Item<'_>], walks: &mut [Walk]) -> Result<(), Failure> {
        let mut tried: Vec<Vec<(Edit, Trace)>> = Vec::with_capacity(walks.len());
        for (item, walk) in items.iter().zip(walks.iter()) {
            tried.push(match walk.left {
                0 => Vec::new(),
                _ => self.drawn(item, walk)?,
            });
        }
        let texts: Vec<&Sequence> = tried.iter().flatten().map(|(_, t)| &t.input).collect();
        let answers = match texts.is_empty() {
            true => Vec::new(),
            false => probabilities(self.context.subject.victim(), &texts)?,
        };
        let mut answers = &answers[..];
        for ((walk, tried), item) in walks.iter_mut().zip(tried).zip(items) {
            let (own, rest) = answers.split_at(tried.len());
            answers = rest;
            if walk.left > 0 {
                walk.go(tried, own, item.label);
            }
        }
        Ok(())
    }

    /// Random flips of the text as it is now.
    fn drawn(&self, item: &Item<'_>, walk: &Walk) -> Result<Vec<(Edit, Trace)>, Failure> {
        let now = &walk.trace;
        let grid = GridText::new(&now.input, &now.edits, self.context.pad)?;
        let stream = self.stream(item).item(now.edits.len() as u64);
        let mut tried = Vec::with_capacity(self.queries);
        for query in 0..self.queries as u64 {
            let Some(edit) = random_flip(&grid, &self.spelling, &stream.item(query)) else {
                break;
            };
            let mut trace = now.clone();
            trace.edit(edit)?;
            tried.push((edit, trace));
        }
        Ok(tried)
    }

    /// Random flips one after the other, without asking.
    fn at_once(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let mut trace = Trace::of(item, Vec::new())?;
        let stream = self.stream(item);
        for step in 0..self.budget(item) as u64 {
            let grid = GridText::new(&trace.input, &trace.edits, self.context.pad)?;
            let Some(edit) = random_flip(&grid, &self.spelling, &stream.item(step)) else {
                break;
            };
            trace.edit(edit)?;
        }
        Ok(trace)
    }

    fn stream(&self, item: &Item<'_>) -> Stream {
        self.context.stream("key-star", item)
    }

    fn budget(&self, item: &Item<'_>) -> usize {
        budget(characters_in(item.input, self.context.pad), self.share)
    }
}
