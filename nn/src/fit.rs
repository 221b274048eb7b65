//! The loop of training: epochs of shuffled batches, a look at dev, early stopping, restarts.
//!
//! A fit is a function of (model, start, examples, settings): the same weights on any number
//! of threads, and the same weights when it is stopped at a checkpoint and resumed.

use crate::batch::Example;
use crate::checkpoint::{Checkpoint, Position};
use crate::error::setting;
use crate::evaluate::{Evaluation, evaluate};
use crate::model::Model;
use crate::objective::Objective;
use crate::optimiser::{Clip, Optimiser};
use crate::order::batches;
use crate::params::Params;
use crate::schedule::Schedule;
use crate::trainer::Trainer;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Settings of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// Passes over the examples.
    pub epochs: usize,
    /// Examples in a batch.
    pub batch: usize,
    /// How weights follow the gradient.
    pub optimiser: Optimiser,
    /// The learning rate before its schedule.
    pub rate: f64,
    /// How the rate changes.
    #[serde(default = "constant")]
    pub schedule: Schedule,
    /// The limit on the gradient.
    #[serde(default = "unclipped")]
    pub clip: Clip,
    /// What is minimised.
    #[serde(default)]
    pub loss: Loss,
    /// What decides which weights are best, and when to stop.
    #[serde(default)]
    pub metric: Metric,
    /// Stop after this many epochs without improvement on dev; 0 for never.
    #[serde(default)]
    pub patience: u32,
    /// Batches in a window that is sorted by length; 1 keeps the order random.
    #[serde(default = "window")]
    pub window: usize,
    /// Names the order, the dropout, and fresh weights after a restart.
    #[serde(default)]
    pub seed: u64,
    /// Start again with fresh weights, up to this often, while dev stays below `accept`.
    #[serde(default)]
    pub restarts: u32,
    /// The dev accuracy that makes a restart unnecessary.
    #[serde(default)]
    pub accept: f64,
}

fn constant() -> Schedule {
    Schedule::Constant
}
fn unclipped() -> Clip {
    Clip::No
}
fn window() -> usize {
    20
}

/// What training minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Cross-entropy.
    #[default]
    CrossEntropy,
    /// `max(0, 1 - margin)`
    Hinge,
}

/// What decides on dev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Larger is better.
    #[default]
    Accuracy,
    /// Smaller is better.
    Loss,
}

impl Metric {
    fn better(self, new: &Evaluation, old: Option<&Evaluation>) -> bool {
        old.is_none_or(|old| match self {
            Metric::Accuracy => new.accuracy > old.accuracy,
            Metric::Loss => new.loss < old.loss,
        })
    }
}

/// What the caller is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A step was taken.
    Step {
        /// Steps taken so far.
        step: u64,
        /// The loss of its batch.
        loss: f64,
        /// The gradient's norm before clipping.
        norm: f64,
        /// The learning rate.
        rate: f64,
    },
    /// An epoch ended.
    Epoch {
        /// Counted from 0.
        epoch: usize,
        /// Mean loss of its batches.
        loss: f64,
        /// On dev, if there are dev examples.
        dev: Option<Evaluation>,
    },
    /// Dev stayed below what is accepted: fresh weights.
    Restart {
        /// Counted from 1.
        attempt: u32,
    },
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Continue,
    /// No; [`Fitted::stopped`] tells so.
    Stop,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The best weights on dev, or the last ones without dev.
    pub params: Params<f32>,
    /// Dev at the best weights.
    pub dev: Option<Evaluation>,
    /// Steps taken in the last attempt.
    pub steps: u64,
    /// Where to go on from.
    pub checkpoint: Checkpoint,
    /// Whether the caller stopped it.
    pub stopped: bool,
}

impl FitSpec {
    /// An error when a setting is outside its range.
    pub fn check(&self) -> Result<()> {
        setting("epochs", self.epochs > 0, "above 0", self.epochs)?;
        setting("batch", self.batch > 0, "above 0", self.batch)?;
        setting("window", self.window > 0, "above 0", self.window)?;
        setting(
            "rate",
            self.rate > 0.0 && self.rate.is_finite(),
            "above 0",
            self.rate,
        )?;
        let limit = match self.clip {
            Clip::No => 1.0,
            Clip::Norm(x) | Clip::Value(x) => x,
        };
        setting("clip", limit > 0.0, "above 0", limit)?;
        self.schedule.check()?;
        self.optimiser.check()
    }
}

/// Trains from `start`, or goes on from `resume`.
pub fn fit(
    model: &Model,
    start: Params<f32>,
    train: &[Example],
    dev: &[Example],
    spec: &FitSpec,
    resume: Option<Checkpoint>,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<Fitted> {
    spec.check()?;
    if train.is_empty() {
        return Err(Error::Empty {
            what: "list of training examples",
        });
    }
    // From inside the pool: entering it for every step makes the times jump.
    rayon::scope(|_| {
        let mut fitted = attempt(model, start.clone(), train, dev, spec, resume, tell)?;
        while !fitted.stopped
            && fitted.checkpoint.position.attempt < spec.restarts
            && fitted.dev.is_some_and(|d| d.accuracy < spec.accept)
        {
            let attempt_number = fitted.checkpoint.position.attempt + 1;
            if tell(&Event::Restart {
                attempt: attempt_number,
            }) == Flow::Stop
            {
                fitted.stopped = true;
                break;
            }
            let mut fresh = model.init(spec.seed.wrapping_add(u64::from(attempt_number)));
            fresh.frozen.clone_from(&start.frozen);
            let mut again = Checkpoint::start(&fresh, &spec.optimiser);
            again.position.attempt = attempt_number;
            let next = attempt(model, fresh, train, dev, spec, Some(again), tell)?;
            let better = next
                .dev
                .is_some_and(|d| spec.metric.better(&d, fitted.dev.as_ref()));
            fitted = if better {
                next
            } else {
                Fitted {
                    checkpoint: next.checkpoint,
                    stopped: next.stopped,
                    steps: next.steps,
                    ..fitted
                }
            };
        }
        Ok(fitted)
    })
}

fn attempt(
    model: &Model,
    start: Params<f32>,
    train: &[Example],
    dev: &[Example],
    spec: &FitSpec,
    resume: Option<Checkpoint>,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<Fitted> {
    let from = resume.unwrap_or_else(|| Checkpoint::start(&start, &spec.optimiser));
    let (mut at, mut best) = (from.position, from.best);
    let seed = spec.seed.wrapping_add(u64::from(at.attempt) << 32);
    let mut trainer = Trainer::new(
        model,
        Params {
            trained: from.trained,
            frozen: start.frozen,
        },
        spec.optimiser,
        spec.clip,
        seed,
    )?;
    trainer.memory = from.memory;
    let lengths: Vec<usize> = train.iter().map(|e| e.input.len()).collect();
    let objective = match spec.loss {
        Loss::CrossEntropy => Objective::CrossEntropy,
        Loss::Hinge => Objective::Hinge,
    };
    let mut stopped = false;
    'epochs: while at.epoch < spec.epochs && !(spec.patience > 0 && at.bad >= spec.patience) {
        let order = batches(&lengths, spec.batch, spec.window, seed, at.epoch as u64);
        for batch in &order[at.batch..] {
            let examples: Vec<&Example> = batch.iter().map(|&i| &train[i]).collect();
            let rate = spec.rate
                * spec
                    .schedule
                    .factor(at.epoch, trainer.memory.updates, at.failures);
            let step = trainer.step_on(&examples, &objective, rate)?;
            at.batch += 1;
            at.loss += step.loss;
            if tell(&Event::Step {
                step: trainer.memory.updates,
                loss: step.loss,
                norm: step.norm,
                rate,
            }) == Flow::Stop
            {
                stopped = true;
                break 'epochs;
            }
        }
        let measured = if dev.is_empty() {
            None
        } else {
            Some(evaluate(model, &trainer.params, dev)?)
        };
        if let Some(now) = measured {
            if spec.metric.better(&now, best.as_ref().map(|(e, _)| e)) {
                best = Some((now, trainer.params.trained.clone()));
                at.bad = 0;
            } else {
                at.bad += 1;
                at.failures += 1;
            }
        }
        let event = Event::Epoch {
            epoch: at.epoch,
            loss: at.loss / order.len() as f64,
            dev: measured,
        };
        at = Position {
            epoch: at.epoch + 1,
            batch: 0,
            loss: 0.0,
            ..at
        };
        if tell(&event) == Flow::Stop {
            stopped = true;
            break;
        }
    }
    let checkpoint = Checkpoint {
        position: at,
        trained: trainer.params.trained.clone(),
        memory: trainer.memory.clone(),
        best: best.clone(),
    };
    let trained = best
        .as_ref()
        .map_or(trainer.params.trained, |(_, w)| w.clone());
    let params = Params {
        trained,
        frozen: trainer.params.frozen,
    };
    Ok(Fitted {
        params,
        dev: best.map(|(e, _)| e),
        steps: trainer.memory.updates,
        checkpoint,
        stopped,
    })
}
