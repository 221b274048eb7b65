//! First the place whose word is replaced, then what to put there.
//!
//! | place | what it takes |
//! |---|---|
//! | by importance | a forward pass per word: how much the probability of the true class falls when its vector is zero |
//! | by attention | a forward pass: how much the model attends to it |
//! | at random, or all in their order | nothing |
//!
//! Then candidates are tried in the place until the goal is reached: in the order given, or those first that change
//! the vector of the sentence least.

use ndarray::{Array1, Array2};
use nn::batch::{Example, Target};
use nn::numeric::softmax;

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::trace::Trace;
use crate::models::failure;
use crate::tables::examples::{FORWARD, QUERIES};

/// Which place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The one of the greatest importance.
    Importance,
    /// Any.
    Random,
    /// All of them, one after the other.
    InOrder,
    /// The one with the least attention.
    LeastAttention(Attention),
    /// The one with the most.
    MostAttention(Attention),
}

/// Whose attention. Heads are averaged; attention that pools a sequence has one layer and one row of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// That of the last layer, and not of the first.
    pub last_layer: bool,
    /// The mean of all tokens, and not that of the first one, [CLS].
    pub all_tokens: bool,
}

/// Candidates that the model is asked about at once. A whole vocabulary at once would hold a vector for each word.
const BATCH: usize = 64;

/// The places to try, in order, of those where a word may be replaced.
pub fn places(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    select: Select,
    eligible: Vec<usize>,
    trace: &mut Trace,
) -> Result<Vec<usize>, Failure> {
    if eligible.is_empty() {
        return Ok(eligible);
    }
    let best = match select {
        Select::InOrder => return Ok(eligible),
        Select::Random => {
            let stream = context.stream("select", item);
            Some(eligible[stream.below(0, eligible.len())])
        }
        Select::Importance => {
            let falls = importance(context, item, &eligible)?;
            trace.count(FORWARD, eligible.len() as u64);
            first_of_the_largest(&eligible, falls)
        }
        Select::LeastAttention(of) | Select::MostAttention(of) => {
            let scores = attention(context, item, of)?;
            trace.count(FORWARD, 1);
            let least = matches!(select, Select::LeastAttention(_));
            let score = |place: &usize| match least {
                true => -scores[*place],
                false => scores[*place],
            };
            first_of_the_largest(&eligible, eligible.iter().map(score))
        }
    };
    Ok(best.into_iter().collect())
}

fn first_of_the_largest(places: &[usize], scores: impl IntoIterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for (score, place) in scores.into_iter().zip(places) {
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, *place));
        }
    }
    best.map(|(_, place)| place)
}

/// How much the probability of the true class falls when a word's vector is zero, for each place in the order given.
pub fn importance(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    places: &[usize],
) -> Result<Vec<f64>, Failure> {
    let victim = context.subject.victim();
    let answers = victim.without(item.tokens()?, places).map_err(failure)?;
    let label = item.label as usize;
    let fall = |logits: Array2<f32>| {
        let after = probabilities_of(&logits.into_raw_vec_and_offset().0);
        f64::from(item.before[label]) - f64::from(after[label])
    };
    Ok(answers.into_iter().map(fall).collect())
}

/// How much is attended to each token.
fn attention(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    of: Attention,
) -> Result<Vec<f64>, Failure> {
    let text = Example {
        input: item.input.clone(),
        target: Target::None,
    };
    let layers = context.subject.victim().attention(&[&text]);
    let layers = layers.map_err(failure)?.pop().unwrap_or_default();
    let layer = if of.last_layer {
        layers.last()
    } else {
        layers.first()
    };
    Ok(layer
        .map(|layer| layer.received(of.all_tokens))
        .unwrap_or_default())
}

/// Tries candidates in a place, in their order, until the goal is reached; says whether it was.
pub fn try_in_order(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    goal: &Goal,
    place: usize,
    candidates: &[u32],
    trace: &mut Trace,
) -> Result<bool, Failure> {
    let (victim, tokens) = (context.subject.victim(), item.tokens()?);
    for batch in candidates.chunks(BATCH) {
        let answers = victim.substituted(tokens, place, batch).map_err(failure)?;
        trace.count(FORWARD, batch.len() as u64);
        let reached = answers.iter().position(|answer| {
            let p = probabilities_of(&answer.logits);
            goal.reached(Answer::Probabilities(&p))
        });
        trace.count(
            QUERIES,
            reached.map_or(batch.len(), |first| first + 1) as u64,
        );
        if let Some(first) = reached {
            trace.edit(Edit::replace(place, tokens[place], batch[first]))?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// One candidate, and what it does to the model.
pub struct Tried {
    /// The word.
    pub token: u32,
    /// The L1 distance between the sentence's vectors with it and without.
    pub distance: f64,
    /// Whether it reaches the goal.
    pub reached: bool,
}

/// All candidates of a place, those first that change the sentence's vector least; of equals the lower id.
pub fn nearest_first(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    goal: &Goal,
    place: usize,
    candidates: &[u32],
    trace: &mut Trace,
) -> Result<Vec<Tried>, Failure> {
    let (victim, tokens) = (context.subject.victim(), item.tokens()?);
    let before = victim.sentences(&[item.input]).map_err(failure)?;
    let before = before
        .first()
        .ok_or_else(|| Failure::new("no sentence vector"))?;
    let mut tried = Vec::with_capacity(candidates.len());
    for batch in candidates.chunks(16 * BATCH) {
        let answers = victim.substituted(tokens, place, batch).map_err(failure)?;
        for (token, answer) in batch.iter().zip(answers) {
            let p = probabilities_of(&answer.logits);
            let after = answer.sentence.as_ref();
            tried.push(Tried {
                token: *token,
                distance: after.map_or(f64::INFINITY, |after| l1(before, after)),
                reached: goal.reached(Answer::Probabilities(&p)),
            });
        }
    }
    trace.count(FORWARD, candidates.len() as u64 + 1);
    tried.sort_by(|a, b| {
        a.distance
            .total_cmp(&b.distance)
            .then(a.token.cmp(&b.token))
    });
    Ok(tried)
}

/// The L1 distance of two vectors.
pub fn l1(a: &Array1<f32>, b: &Array1<f32>) -> f64 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs())
        .sum()
}

fn probabilities_of(logits: &[f32]) -> Vec<f32> {
    let mut p = logits.to_vec();
    softmax(&mut p);
    p
}
