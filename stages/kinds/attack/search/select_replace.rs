//! First the word that matters most, then what to put in its place.

use nn::batch::Sequence;

use super::exhaustive::{first_success, replacements};
use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::goals::Goal;
use crate::kinds::attack::trace::Trace;
use crate::models::failure;
use crate::models::loaded::probabilities;
use crate::tables::examples::FORWARD;

/// How much the probability of the true class falls when a word's vector is zero, for each place in the order given.
pub fn importance(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    places: &[usize],
) -> Result<Vec<f64>, Failure> {
    let victim = context.subject.victim();
    let embedded = victim.embed(&[item.input]).map_err(failure)?;
    let Some(vectors) = embedded.first() else {
        return Ok(Vec::new());
    };
    let without = |place: &usize| {
        let mut vectors = vectors.clone();
        vectors.row_mut(*place).fill(0.0);
        Sequence::Vectors(vectors)
    };
    let rows: Vec<Sequence> = places.iter().map(without).collect();
    let rows: Vec<&Sequence> = rows.iter().collect();
    let label = item.label as usize;
    let fall = |after: Vec<f32>| f64::from(item.before[label]) - f64::from(after[label]);
    let answers = probabilities(victim, &rows)?;
    Ok(answers.into_iter().map(fall).collect())
}

/// Selects the place of the greatest importance, the first of equals, and tries candidates there, one after the
/// other, until the goal is reached. One more forward pass per place.
pub fn select_then_replace(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    goal: &Goal,
    candidates: impl Fn(u32) -> Vec<u32>,
) -> Result<Trace, Failure> {
    let tokens = item.tokens()?;
    let text = |place: &usize| !context.special.contains(&tokens[*place]);
    let places: Vec<usize> = (0..tokens.len()).filter(text).collect();
    let importance = importance(context, item, &places)?;
    let mut best: Option<(f64, usize)> = None;
    for (fall, place) in importance.into_iter().zip(&places) {
        if best.is_none_or(|(most, _)| fall > most) {
            best = Some((fall, *place));
        }
    }
    let place = best.map(|(_, place)| place);
    let mut trace = first_success(context, item, goal, replacements(tokens, place, candidates))?;
    trace.count(FORWARD, places.len() as u64);
    Ok(trace)
}
