//! What a network goes through on an item, and gradients of objectives that are chosen by it, in one forward pass.

use super::interface::{Gradient, LayerStates};
use super::neural::{Neural, Pass};
use super::per_item::{input_of, losses_of, states_of};
use crate::autodiff::{Tape, Want};
use crate::batch::{Batch, Example};
use crate::error::Result;
use crate::models::Output;
use crate::objectives::Objective;
use ndarray::{Array1, Array2};

/// What a recurrent network went through on one item with a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The vectors that the item was read as, (steps, dim).
    pub input: Array2<f32>,
    /// All states and gates, layer by layer.
    pub layers: Vec<LayerStates>,
    /// Cross-entropy at every step of the target.
    pub losses: Array1<f64>,
}

fn observed(tape: &Tape<f32>, out: &Output, batch: &Batch<f32>, b: usize) -> Result<Observed> {
    Ok(Observed {
        input: input_of(tape, out, batch, tape.get(out.input), b),
        layers: states_of(tape, out, batch, b)?,
        losses: losses_of(tape, out, batch, b)?,
    })
}

impl Neural<'_> {
    /// What the network goes through on items with targets.
    pub fn observe(&self, items: &[&Example]) -> Result<Vec<Observed>> {
        let unchanged = |_: &mut Batch<f32>, _: &[usize]| Ok(());
        self.each(items, Want::NOTHING, unchanged, |shard, out, batch| {
            let each = 0..batch.items();
            each.map(|b| observed(&shard.tape, out, batch, b)).collect()
        })
    }

    /// The same with the gradient of the objective that is chosen for each item by its place in the list and by what
    /// the network went through.
    pub fn observe_and_differentiate(
        &self,
        items: &[&Example],
        choose: impl Fn(usize, &Observed) -> Objective + Sync,
    ) -> Result<Vec<(Observed, Gradient)>> {
        let unchanged = |_: &mut Batch<f32>, _: &[usize]| Ok(());
        self.each_with(
            items,
            Pass::whole(Want::INPUT),
            unchanged,
            |shard, out, batch, ids| {
                let each = 0..batch.items();
                let seen: Result<Vec<Observed>> =
                    each.map(|b| observed(&shard.tape, out, batch, b)).collect();
                let seen = seen?;
                let chosen = ids.iter().zip(&seen);
                let chosen: Vec<Objective> =
                    chosen.map(|(place, seen)| choose(*place, seen)).collect();
                let objectives: Vec<&Objective> = chosen.iter().collect();
                let gradients = self.differentiate(shard, out, batch, &objectives)?;
                Ok(seen.into_iter().zip(gradients).collect())
            },
        )
    }
}
