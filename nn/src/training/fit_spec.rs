//! The settings of a fit, each with its written default.

use crate::error::{Result, setting};
use crate::training::{Clip, Evaluation, Optimiser, Schedule};
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
    /// Decoupled weight decay (Loshchilov and Hutter 2019): every step multiplies all trained weights by
    /// `1 - rate * weight_decay` first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight_decay: f64,
    /// What is minimised.
    #[serde(default)]
    pub loss: Loss,
    /// What decides which weights are best, and when to stop.
    #[serde(default)]
    pub metric: Metric,
    /// Stop after this many evaluations on dev without improvement; 0 for never.
    #[serde(default)]
    pub patience: u32,
    /// Evaluations on dev per epoch, evenly spaced; the last one is at its end.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub dev_checks: u32,
    /// Which weights are the outcome.
    #[serde(default)]
    pub keep: Keep,
    /// Batches in a window that is sorted by length; 1 keeps the order random.
    #[serde(default = "window")]
    pub window: usize,
    /// Every batch holds the same number of items of each class ([`crate::training::Classes`]); `batch` must then be
    /// a multiple of the number of classes.
    #[serde(default)]
    pub balanced: bool,
    /// Names the order, the dropout, and fresh weights after a restart.
    #[serde(default)]
    pub seed: u64,
    /// Start again with fresh weights, up to this often, while dev stays below `accept`.
    #[serde(default)]
    pub restarts: u32,
    /// The dev accuracy that makes a restart unnecessary.
    #[serde(default)]
    pub accept: f64,
    /// Training examples, evenly spaced, on which accuracy is measured after each epoch; 0 for none.
    #[serde(default)]
    pub probe: usize,
}

fn constant() -> Schedule {
    Schedule::Constant
}
fn unclipped() -> Clip {
    Clip::No
}
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
fn window() -> usize {
    20
}
fn one() -> u32 {
    1
}
fn is_one(x: &u32) -> bool {
    *x == 1
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

/// Which weights a fit ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Those of the best epoch on dev; the last ones without a dev split.
    #[default]
    Best,
    /// Those after the last epoch, whatever the dev metric.
    Last,
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
    pub(crate) fn better(self, new: &Evaluation, old: Option<&Evaluation>) -> bool {
        old.is_none_or(|old| match self {
            Metric::Accuracy => new.accuracy > old.accuracy,
            Metric::Loss => new.loss < old.loss,
        })
    }
}

impl FitSpec {
    /// Adam on cross-entropy, with the written default of every other setting.
    pub fn new(epochs: usize, batch: usize, rate: f64) -> Self {
        FitSpec {
            epochs,
            batch,
            optimiser: Optimiser::ADAM,
            rate,
            schedule: constant(),
            clip: unclipped(),
            weight_decay: 0.0,
            loss: Loss::default(),
            metric: Metric::default(),
            patience: 0,
            dev_checks: 1,
            keep: Keep::default(),
            window: window(),
            balanced: false,
            seed: 0,
            restarts: 0,
            accept: 0.0,
            probe: 0,
        }
    }

    /// Whether dev is evaluated after this many of an epoch's batches; at its end it always is.
    pub(crate) fn is_checked_after(&self, done: usize, batches: usize) -> bool {
        let checks = self.dev_checks as usize;
        done < batches && (1..checks).any(|k| done == batches * k / checks)
    }

    /// An error when a setting is outside its range.
    pub fn check(&self) -> Result<()> {
        setting("epochs", self.epochs > 0, "above 0", self.epochs)?;
        setting("batch", self.batch > 0, "above 0", self.batch)?;
        setting("window", self.window > 0, "above 0", self.window)?;
        setting(
            "dev_checks",
            self.dev_checks > 0,
            "above 0",
            self.dev_checks,
        )?;
        // Attempts are compared by their best epochs, which would then not be kept.
        let comparable = self.keep == Keep::Best || self.restarts == 0;
        setting("restarts", comparable, "0 with keep = last", self.restarts)?;
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
        let decay = self.weight_decay;
        setting(
            "weight_decay",
            (0.0..1.0).contains(&decay),
            "in [0, 1)",
            decay,
        )?;
        self.schedule.check()?;
        self.optimiser.check()
    }
}
