//! Training and measuring a language model on one long text, states carried from window to window.
//!
//! The text is cut into `batch` rows of equal length; a window is `steps` tokens of every row, its targets the
//! tokens one later. States start at zero in every epoch (Zaremba et al. 2014). Gradients stop at the window.

use super::evaluate::evaluate_stream;
use super::windows::{Rows, zero_states};
use crate::autodiff::Params;
use crate::batch::Batch;
use crate::error::{Result, setting};
use crate::models::Model;
use crate::objectives::Objective;
use crate::training::{
    Checkpoint, Clip, Evaluation, Event, FitIdentity, Flow, Keep, Metric, Optimiser, Position,
    Schedule, Trainer, shards,
};
use serde::{Deserialize, Serialize};

/// Settings of a fit on a long text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Passes over the text.
    pub epochs: usize,
    /// Rows that the text is cut into.
    pub batch: usize,
    /// Tokens in a window.
    pub steps: usize,
    /// How weights follow the gradient.
    pub optimiser: Optimiser,
    /// The learning rate before its schedule.
    pub rate: f64,
    /// How the rate changes.
    pub schedule: Schedule,
    /// The limit on the gradient.
    pub clip: Clip,
    /// What decides which weights are best, and when to stop.
    pub metric: Metric,
    /// Stop after this many epochs without improvement on dev; 0 for never.
    #[serde(default)]
    pub patience: u32,
    /// Which weights are the outcome.
    #[serde(default)]
    pub keep: Keep,
    /// Names the dropout.
    #[serde(default)]
    pub seed: u64,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedStream {
    /// The best weights on dev; the last ones without dev or with [`Keep::Last`].
    pub params: Params<f32>,
    /// On dev after each epoch, if there is a dev text.
    pub dev: Vec<Evaluation>,
    /// Where to go on from.
    pub checkpoint: Checkpoint,
    /// Whether the caller stopped it.
    pub stopped: bool,
}

/// Trains from `start`. The loss of a window is summed over its steps and averaged over rows.
pub fn fit_stream(
    model: &Model,
    start: Params<f32>,
    text: &[u32],
    dev: &[u32],
    spec: &StreamSpec,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<FittedStream> {
    run(model, start, [text, dev], spec, None, tell)
}

/// Goes on from a checkpoint of [`fit_stream`] with the same model, texts and settings.
pub fn resume_stream(
    model: &Model,
    start: Params<f32>,
    text: &[u32],
    dev: &[u32],
    spec: &StreamSpec,
    from: Checkpoint,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<FittedStream> {
    run(model, start, [text, dev], spec, Some(from), tell)
}

pub(super) fn run(
    model: &Model,
    start: Params<f32>,
    [text, dev]: [&[u32]; 2],
    spec: &StreamSpec,
    resume: Option<Checkpoint>,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<FittedStream> {
    setting("epochs", spec.epochs > 0, "above 0", spec.epochs)?;
    setting("steps", spec.steps > 0, "above 0", spec.steps)?;
    setting(
        "rate",
        spec.rate > 0.0 && spec.rate.is_finite(),
        "above 0",
        spec.rate,
    )?;
    spec.schedule.check()?;
    start.check(model.layout())?;
    let identity = FitIdentity::new(model, &start, spec)
        .tokens("text", text)
        .tokens("dev", dev);
    let mut at = match resume {
        Some(checkpoint) => {
            identity.check(&checkpoint.identity)?;
            checkpoint
        }
        None => Checkpoint::start(identity, &start, &spec.optimiser),
    };
    let params = Params {
        trained: std::mem::take(&mut at.trained),
        frozen: start.frozen,
    };
    rayon::scope(|_| {
        let mut trainer = Trainer::new(model, params, spec.optimiser, spec.clip, spec.seed)?;
        trainer.memory = std::mem::take(&mut at.memory);
        let stopped = epochs(&mut trainer, &mut at, [text, dev], spec, tell)?;
        at.trained.clone_from(&trainer.params.trained);
        at.memory = trainer.memory;
        let mut params = trainer.params;
        if let (Keep::Best, Some((_, best))) = (spec.keep, &at.best) {
            params.trained.clone_from(best);
        }
        Ok(FittedStream {
            params,
            dev: at.history.clone(),
            checkpoint: at,
            stopped,
        })
    })
}

/// Goes on from `at` to the end; whether the caller stopped it.
fn epochs(
    trainer: &mut Trainer,
    at: &mut Checkpoint,
    [text, dev]: [&[u32]; 2],
    spec: &StreamSpec,
    tell: &mut (dyn FnMut(&Event) -> Flow + Send),
) -> Result<bool> {
    let rows = Rows::new(text, spec.batch)?;
    let (zero, parts) = (zero_states(trainer.model)?, shards(spec.batch));
    let patient = |bad: u32| spec.patience == 0 || bad < spec.patience;
    while at.position.epoch < spec.epochs && patient(at.position.bad) {
        let epoch = at.position.epoch;
        if at.position.batch == 0 {
            at.carry = parts.iter().map(|r| zero.of(r.len())).collect();
        }
        for from in (0..rows.len).step_by(spec.steps).skip(at.position.batch) {
            let window = from..rows.len.min(from + spec.steps);
            let states = std::mem::take(&mut at.carry);
            let batches: Vec<Batch<f32>> = parts
                .iter()
                .zip(states)
                .map(|(part, carry)| rows.window(part.clone(), window.clone(), carry))
                .collect();
            let (updates, failures) = (trainer.memory.updates, at.position.failures);
            let rate = spec.rate * spec.schedule.factor(epoch, updates, failures);
            let step = trainer.step(&batches, &Objective::CrossEntropy, rate)?;
            at.carry = step.carry;
            at.position.loss += step.loss;
            at.position.batch += 1;
            let event = Event::Step {
                step: trainer.memory.updates,
                loss: step.loss,
                norm: step.norm,
                rate,
            };
            if tell(&event) == Flow::Stop {
                return Ok(true);
            }
        }
        let found = if dev.is_empty() {
            None
        } else {
            let (model, params) = (trainer.model, &trainer.params);
            Some(evaluate_stream(model, params, dev, spec.steps)?)
        };
        at.history.extend(found);
        if let Some(now) = found {
            if spec.metric.better(&now, at.best.as_ref().map(|(e, _)| e)) {
                at.best = Some((now, trainer.params.trained.clone()));
                at.position.bad = 0;
            } else {
                at.position.bad += 1;
                at.position.failures += 1;
            }
        }
        let event = Event::Epoch {
            epoch,
            step: trainer.memory.updates,
            loss: at.position.loss / at.position.batch as f64,
            train: None,
            dev: found,
        };
        at.carry.clear();
        at.position = Position {
            epoch: epoch + 1,
            batch: 0,
            loss: 0.0,
            ..at.position
        };
        if tell(&event) == Flow::Stop {
            return Ok(true);
        }
    }
    Ok(false)
}
