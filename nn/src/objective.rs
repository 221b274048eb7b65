//! What is differentiated: a number for each item, and its gradient on the tape.
//!
//! Logits are (time, items, classes), time 1 for classifiers. Values are summed over an item's steps.
//! - cross-entropy: `ln sum_k e^(z_k) - z_y`; gradient `softmax(z) - onehot(y)`
//! - margin: `z_y - max_(k != y) z_k`
//! - hinge: `max(0, 1 - margin)`
//! - logit `k`: `z_k`, a row of the Jacobian
//! - ranks: at one step, the logits of ranks 2 to `k` minus that of rank 1
//! - states: a weighted sum of chosen hidden states, cell states or gates

use crate::batch::{Batch, Targets};
use crate::layers::States;
use crate::model::Output;
use crate::simd::softmax;
use crate::tape::{Tape, Var};
use crate::{Error, Real, Result};

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

/// Which numbers of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Hidden state.
    Hidden,
    /// Cell state.
    Cell,
    /// A gate by its letter.
    Gate(char),
}

/// `weight * state[layer, step, unit]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateTerm {
    /// Index among the model's recurrent layers.
    pub layer: usize,
    /// Hidden, cell or gate.
    pub kind: StateKind,
    /// The step.
    pub step: usize,
    /// The unit, or all of them.
    pub unit: Option<usize>,
    /// The factor.
    pub weight: f64,
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
        match self {
            Objective::CrossEntropy | Objective::Margin | Objective::Hinge => {
                self.against_target(tape, out.logits, &batch.targets, scale)
            }
            Objective::Logit(k) => {
                let shape = tape.shape(out.logits);
                let k = below("class", *k, shape.dim)?;
                let mut values = vec![0.0; shape.batch];
                for (b, value) in values.iter_mut().enumerate() {
                    for t in 0..batch.answered(shape.time, b) {
                        let at = (t * shape.batch + b) * shape.dim + k;
                        *value += tape.get(out.logits)[at].to_f64();
                        tape.seed(out.logits)[at] += T::of(scale);
                    }
                }
                Ok(values)
            }
            Objective::Ranks { step, last } => ranks(tape, out.logits, batch, *step, *last, scale),
            Objective::States(terms) => {
                let mut values = vec![0.0; batch.items()];
                for term in terms {
                    term.apply(tape, &out.states, &mut values, scale)?;
                }
                Ok(values)
            }
            Objective::Sum(parts) => {
                let mut values = vec![0.0; batch.items()];
                for (weight, part) in parts {
                    for (v, p) in
                        values
                            .iter_mut()
                            .zip(part.apply(tape, out, batch, scale * weight)?)
                    {
                        *v += weight * p;
                    }
                }
                Ok(values)
            }
        }
    }

    fn against_target<T: Real>(
        &self,
        tape: &mut Tape<T>,
        logits: Var,
        targets: &Targets,
        scale: f64,
    ) -> Result<Vec<f64>> {
        let shape = tape.shape(logits);
        let z = tape.take(logits);
        let seed = tape.seed(logits);
        let mut values = vec![0.0; shape.batch];
        for row in 0..shape.rows() {
            let (t, b) = (row / shape.batch, row % shape.batch);
            let target = match targets {
                Targets::None => return Err(Error::Missing { what: "target" }),
                Targets::Classes(classes) => classes[b],
                Targets::Tokens(_, lens) if t >= lens[b] => continue,
                Targets::Tokens(ids, _) => ids[row],
            };
            let y = below("target", target as usize, shape.dim)?;
            let here = row * shape.dim..(row + 1) * shape.dim;
            values[b] += self.one(&z[here.clone()], y, &mut seed[here], T::of(scale));
        }
        tape.put(logits, z);
        Ok(values)
    }

    /// One row of logits.
    fn one<T: Real>(&self, z: &[T], y: usize, seed: &mut [T], scale: T) -> f64 {
        if *self == Objective::CrossEntropy {
            let mut p = z.to_vec();
            let log = softmax(&mut p);
            for (s, p) in seed.iter_mut().zip(&p) {
                *s += *p * scale;
            }
            seed[y] -= scale;
            return (log - z[y]).to_f64();
        }
        let other = best_other(z, y);
        let margin = other.map_or(f64::INFINITY, |o| (z[y] - z[o]).to_f64());
        let (value, slope) = match self {
            Objective::Margin => (margin, scale),
            _ if margin < 1.0 => (1.0 - margin, -scale),
            // A NaN margin is not below 1, and must not look like a loss of zero.
            _ => (if margin.is_nan() { margin } else { 0.0 }, T::ZERO),
        };
        if let Some(o) = other {
            seed[y] += slope;
            seed[o] -= slope;
        }
        value
    }
}

impl StateTerm {
    fn apply<T: Real>(
        &self,
        tape: &mut Tape<T>,
        layers: &[States],
        values: &mut [f64],
        scale: f64,
    ) -> Result<()> {
        let states = &layers[below("layer", self.layer, layers.len())?];
        let units = tape.shape(states.h).dim;
        let (var, from) = match self.kind {
            StateKind::Hidden => (states.h, 0),
            StateKind::Cell => (states.c.ok_or(Error::Missing { what: "cell state" })?, 0),
            StateKind::Gate(name) => {
                let gate = states
                    .gates
                    .iter()
                    .find(|g| g.name == name)
                    .ok_or(Error::Missing {
                        what: "gate of that name",
                    })?;
                (gate.var, gate.from)
            }
        };
        let shape = tape.shape(var);
        below("step", self.step, shape.time)?;
        let chosen = match self.unit {
            None => 0..units,
            Some(u) => below("unit", u, units)?..u + 1,
        };
        for (b, value) in values.iter_mut().enumerate() {
            let row = (self.step * shape.batch + b) * shape.dim + from;
            for unit in chosen.clone() {
                *value += self.weight * tape.get(var)[row + unit].to_f64();
                tape.seed(var)[row + unit] += T::of(self.weight * scale);
            }
        }
        Ok(())
    }
}

/// The best class that is not `y`; the first of equals. A NaN is best, so that nobody passes over it.
fn best_other<T: Real>(z: &[T], y: usize) -> Option<usize> {
    let mut best: Option<usize> = None;
    for k in (0..z.len()).filter(|k| *k != y) {
        if best.is_none_or(|b| z[k] > z[b] || z[k].to_f64().is_nan()) {
            best = Some(k);
        }
    }
    best
}

/// The logits of ranks 2 to `last` minus that of rank 1, at one step of every item.
fn ranks<T: Real>(
    tape: &mut Tape<T>,
    logits: Var,
    batch: &Batch<T>,
    step: usize,
    last: usize,
    scale: f64,
) -> Result<Vec<f64>> {
    let shape = tape.shape(logits);
    below("rank", last, shape.dim + 1)?;
    if last == 0 {
        return Err(Error::Setting {
            what: "rank",
            expected: "above 0".into(),
            got: "0".into(),
        });
    }
    let mut values = Vec::with_capacity(shape.batch);
    for b in 0..shape.batch {
        let steps = batch.answered(shape.time, b);
        if step >= steps {
            return Err(Error::Range {
                what: "step",
                item: b,
                got: step,
                below: steps,
            });
        }
        let from = (step * shape.batch + b) * shape.dim;
        let z = &tape.get(logits)[from..from + shape.dim];
        let mut order: Vec<usize> = (0..shape.dim).collect();
        order.sort_by(|&i, &j| {
            z[j].partial_cmp(&z[i])
                .unwrap_or(std::cmp::Ordering::Equal)
                .then(i.cmp(&j))
        });
        let others: f64 = order[1..last].iter().map(|&k| z[k].to_f64()).sum();
        values.push(others - z[order[0]].to_f64());
        let seed = &mut tape.seed(logits)[from..from + shape.dim];
        order[1..last].iter().for_each(|&k| seed[k] += T::of(scale));
        seed[order[0]] -= T::of(scale);
    }
    Ok(values)
}

fn below(what: &'static str, got: usize, below: usize) -> Result<usize> {
    if got < below {
        Ok(got)
    } else {
        Err(Error::Range {
            what,
            item: 0,
            got,
            below,
        })
    }
}
