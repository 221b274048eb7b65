//! A walk along the gradient: one word after the other, until the goal is reached or the budget spent.
//!
//! A batch of items walks in step, so that every round is one gradient and one product with the
//! dictionary. Rows of both have the same bits alone and in a batch: so does an item's walk.

use nn::batch::{Example, Sequence, Target};

use super::goal::Goal;
use super::moves::{Ask, Steepest};
use crate::Failure;
use crate::attack::scene::{Change, Item, Scene, Trace};
use crate::models::failure;

/// One item on its way.
struct Walker {
    goal: Goal,
    /// Places still to be changed, the next one last.
    places: Vec<usize>,
    tokens: Vec<u32>,
    trace: Trace,
    walking: bool,
}

/// Walks from every item to its goal. `places` lists where an item may be changed, in order;
/// none is used twice, and no more than the budget.
pub fn walk(
    scene: &Scene<'_>,
    items: &[Item<'_>],
    goal: impl Fn(&Item<'_>) -> Goal,
    places: impl Fn(&[u32]) -> Vec<usize>,
    budget: usize,
    moves: &Steepest,
) -> Result<Vec<Trace>, Failure> {
    let mut walkers = Vec::with_capacity(items.len());
    for item in items {
        let tokens = item.tokens()?.to_vec();
        let mut places = places(&tokens);
        places.truncate(budget);
        places.reverse();
        walkers.push(Walker {
            goal: goal(item),
            places,
            tokens,
            trace: Trace {
                attacked: true,
                ..Trace::untouched(item)
            },
            walking: true,
        });
    }
    while walkers.iter().any(|w| w.walking) {
        step(scene, &mut walkers, moves)?;
    }
    Ok(walkers
        .into_iter()
        .map(|w| Trace {
            input: Sequence::Tokens(w.tokens),
            ..w.trace
        })
        .collect())
}

/// One round: a gradient for everyone on the way, then one word each.
fn step(scene: &Scene<'_>, walkers: &mut [Walker], moves: &Steepest) -> Result<(), Failure> {
    let mut classes: Vec<u32> = walkers
        .iter()
        .filter(|w| w.walking)
        .map(|w| w.goal.class())
        .collect();
    classes.sort_unstable();
    classes.dedup();
    let mut asks: Vec<(usize, usize, Vec<f32>)> = Vec::new();
    for class in classes {
        let group: Vec<usize> = (0..walkers.len())
            .filter(|i| walkers[*i].walking && walkers[*i].goal.class() == class)
            .collect();
        let examples: Vec<Example> = group
            .iter()
            .map(|i| Example {
                input: Sequence::Tokens(walkers[*i].tokens.clone()),
                target: Target::None,
            })
            .collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let objective = walkers[group[0]].goal.objective();
        let victim = scene.subject.victim();
        let gradients = victim.gradients(&examples, &objective).map_err(failure)?;
        for (i, gradient) in group.into_iter().zip(gradients) {
            let walker = &mut walkers[i];
            walker.trace.forward += 1;
            walker.trace.backward += 1;
            let next = walker.places.last().copied();
            match next {
                Some(place) if !walker.goal.reached(&gradient.logits) => {
                    let dim = gradient.input.dim;
                    let row = gradient.input.data[place * dim..(place + 1) * dim].to_vec();
                    asks.push((i, place, row));
                }
                _ => walker.walking = false,
            }
        }
    }
    let questions: Vec<Ask<'_>> = asks
        .iter()
        .map(|(i, place, gradient)| Ask {
            token: walkers[*i].tokens[*place],
            gradient,
        })
        .collect();
    if questions.is_empty() {
        return Ok(());
    }
    let answers = moves.best(&questions)?;
    for ((i, place, _), answer) in asks.iter().zip(answers) {
        let walker = &mut walkers[*i];
        walker.places.pop();
        let Some(new) = answer else {
            walker.walking = false;
            continue;
        };
        let old = std::mem::replace(&mut walker.tokens[*place], new);
        walker.trace.changes.push(Change {
            position: *place,
            old,
            new,
        });
    }
    Ok(())
}
