//! What is differentiated: a number for each item, and its gradient on the tape.
//!
//! Logits are (time, items, classes), time 1 for classifiers. Values are summed over an item's steps.
//! - cross-entropy: `ln sum_k e^(z_k) - z_y`; gradient `softmax(z) - onehot(y)`
//! - margin: `z_y - max_(k != y) z_k`
//! - hinge: `max(0, 1 - margin)`
//! - logit `k`: `z_k`, a row of the Jacobian
//! - ranks: at one step, the logits of ranks 2 to `k` minus that of rank 1
//! - states: a weighted sum of chosen hidden states, cell states or gates

use super::loss::{cross_entropy, margin};
use super::range::below;
use super::ranks::ranks;
use super::states::StateTerm;
use crate::autodiff::{Tape, Var};
use crate::batch::{Batch, Targets};
use crate::error::{Error, Result, same};
use crate::models::Output;
use crate::numeric::Real;

/// A scalar of each item's outputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Objective {
    /// Against the target.
    CrossEntropy,
    /// Of the target over the best other class.
    Margin,
    /// `max(0, 1 - margin)`
    Hinge,
    /// One class, whatever the target; at every step of a sequence model.
    Logit(usize),
    /// Of one step of a sequence model.
    Ranks {
        /// The step.
        step: usize,
        /// Ranks 2 to this one count against rank 1.
        last: usize,
    },
    /// Chosen states.
    States(Vec<StateTerm>),
    /// A weighted sum.
    Sum(Vec<(f64, Objective)>),
}

impl Objective {
    /// Adds `scale` times the gradient to the tape and returns every item's value.
    pub fn apply<T: Real>(
        &self,
        tape: &mut Tape<T>,
        out: &Output,
        batch: &Batch<T>,
        scale: f64,
    ) -> Result<Vec<f64>> {
        (0..batch.items())
            .map(|b| self.apply_to_item(tape, out, batch, b, scale))
            .collect()
    }

    /// As [`Objective::apply`], with an objective for each item: one pass for items that want different things.
    pub fn apply_each<T: Real>(
        objectives: &[&Objective],
        tape: &mut Tape<T>,
        out: &Output,
        batch: &Batch<T>,
        scale: f64,
    ) -> Result<Vec<f64>> {
        same("objectives", batch.items(), objectives.len())?;
        let each = objectives.iter().enumerate();
        each.map(|(b, objective)| objective.apply_to_item(tape, out, batch, b, scale))
            .collect()
    }

    /// The value of item `b`; adds `scale` times its gradient to the tape.
    fn apply_to_item<T: Real>(
        &self,
        tape: &mut Tape<T>,
        out: &Output,
        batch: &Batch<T>,
        b: usize,
        scale: f64,
    ) -> Result<f64> {
        let shape = tape.shape(out.logits);
        let steps = batch.answered(shape.time, b);
        let mut value = 0.0;
        match self {
            Objective::CrossEntropy | Objective::Margin | Objective::Hinge => {
                for t in 0..steps {
                    let y = target(batch, t, b)?;
                    let y = below("target", y as usize, shape.dim)?;
                    value += row(tape, out.logits, t, b, |z, seed| match self {
                        Objective::CrossEntropy => cross_entropy(z, y, seed, T::of(scale)),
                        _ => margin(z, y, seed, T::of(scale), *self == Objective::Hinge),
                    });
                }
            }
            Objective::Logit(k) => {
                let k = below("class", *k, shape.dim)?;
                for t in 0..steps {
                    let at = (t * shape.batch + b) * shape.dim + k;
                    value += tape.get(out.logits)[at].to_f64();
                    tape.seed(out.logits)[at] += T::of(scale);
                }
            }
            Objective::Ranks { step, last } => {
                if *step >= steps {
                    return Err(Error::Range {
                        what: "step",
                        item: b,
                        got: *step,
                        below: steps,
                    });
                }
                value = row(tape, out.logits, *step, b, |z, seed| {
                    ranks(z, seed, *last, scale)
                })?;
            }
            Objective::States(terms) => {
                for term in terms {
                    term.apply(tape, &out.states, b, scale, &mut value)?;
                }
            }
            Objective::Sum(parts) => {
                for (weight, part) in parts {
                    value += weight * part.apply_to_item(tape, out, batch, b, scale * weight)?;
                }
            }
        }
        Ok(value)
    }
}

/// What item `b` should predict at step `t`.
fn target<T: Real>(batch: &Batch<T>, t: usize, b: usize) -> Result<u32> {
    match &batch.targets {
        Targets::None => Err(Error::Missing { what: "target" }),
        Targets::Classes(classes) => Ok(classes[b]),
        Targets::Tokens(ids, _) => Ok(ids[t * batch.items() + b]),
    }
}

/// One row of logits, and its gradient to add to.
fn row<T: Real, R>(
    tape: &mut Tape<T>,
    logits: Var,
    t: usize,
    b: usize,
    f: impl FnOnce(&[T], &mut [T]) -> R,
) -> R {
    let shape = tape.shape(logits);
    let from = (t * shape.batch + b) * shape.dim;
    let here = from..from + shape.dim;
    let z = tape.take(logits);
    let value = f(&z[here.clone()], &mut tape.seed(logits)[here]);
    tape.put(logits, z);
    value
}
