//! One edit after the other, each on the row as it came, until the goal is reached.

use nn::batch::Sequence;

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::trace::Trace;
use crate::models::loaded::probabilities;
use crate::tables::examples::{FORWARD, QUERIES};

/// Edits that the model is asked about at once.
const BATCH: usize = 64;

/// The first edit that reaches the goal, or an unchanged row. An edit that leaves the row as it is is not tried.
pub fn first_success(
    context: &AttackContext<'_>,
    item: &Item<'_>,
    goal: &Goal,
    edits: impl IntoIterator<Item = Edit>,
) -> Result<Trace, Failure> {
    let mut trace = Trace {
        attacked: true,
        ..Trace::untouched(item)
    };
    let mut edits = edits.into_iter();
    loop {
        let mut tried: Vec<(Edit, Sequence)> = Vec::with_capacity(BATCH);
        for edit in edits.by_ref() {
            let mut row = item.input.clone();
            edit.apply(&mut row)?;
            if row != *item.input {
                tried.push((edit, row));
            }
            if tried.len() == BATCH {
                break;
            }
        }
        if tried.is_empty() {
            return Ok(trace);
        }
        let rows: Vec<&Sequence> = tried.iter().map(|(_, row)| row).collect();
        let answers = probabilities(context.subject.victim(), &rows)?;
        trace.count(FORWARD, rows.len() as u64);
        let reached = |p: &Vec<f32>| goal.reached(Answer::Probabilities(p));
        match answers.iter().position(reached) {
            Some(first) => {
                trace.count(QUERIES, first as u64 + 1);
                trace.edit(tried[first].0)?;
                return Ok(trace);
            }
            None => trace.count(QUERIES, tried.len() as u64),
        }
    }
}

/// Every word of a list in every one of these places: first all words of the first place.
pub fn replacements<'a>(
    tokens: &'a [u32],
    places: impl IntoIterator<Item = usize> + 'a,
    candidates: impl Fn(u32) -> Vec<u32> + 'a,
) -> impl Iterator<Item = Edit> + 'a {
    places.into_iter().flat_map(move |place| {
        let old = tokens[place];
        let edit = move |new| Edit::replace(place, old, new);
        candidates(old).into_iter().map(edit)
    })
}
