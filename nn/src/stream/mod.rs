//! Training and measuring a language model on one long text, states carried from window to window.
//!
//! The text is cut into `batch` rows of equal length; a window is `steps` tokens of every row, its targets the
//! tokens one later. States start at zero in every epoch (Zaremba et al. 2014). Gradients stop at the window.

mod rows;

use crate::Result;
use crate::batch::Batch;
use crate::checkpoint::{Checkpoint, Position};
use crate::error::setting;
use crate::evaluate::Evaluation;
use crate::fit::{Event, Flow};
use crate::model::Model;
use crate::objective::Objective;
use crate::optimiser::{Clip, Optimiser};
use crate::owner::Owner;
use crate::params::Params;
use crate::schedule::Schedule;
use crate::tape::{Tape, Want};
use crate::trainer::{Trainer, shards};
use rows::{Rows, zero_states};
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
    /// Names the dropout.
    #[serde(default)]
    pub seed: u64,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedStream {
    /// The weights after the last epoch.
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

fn run(
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
    let owner = Owner::new(model, &start, spec)
        .tokens("text", text)
        .tokens("dev", dev);
    let mut at = match resume {
        Some(checkpoint) => {
            owner.check(&checkpoint.owner)?;
            checkpoint
        }
        None => Checkpoint::start(owner, &start, &spec.optimiser),
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
        Ok(FittedStream {
            params: trainer.params,
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
    while at.position.epoch < spec.epochs {
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
            let rate = spec.rate * spec.schedule.factor(epoch, trainer.memory.updates, 0);
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
            ..Position::default()
        };
        if tell(&event) == Flow::Stop {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Loss and accuracy over a text read from its first token to its last, state and all.
pub fn evaluate_stream(
    model: &Model,
    params: &Params<f32>,
    text: &[u32],
    steps: usize,
) -> Result<Evaluation> {
    let rows = Rows::new(text, 1)?;
    let mut carry = zero_states(model)?.of(1);
    let mut tape = Tape::default();
    let (mut loss, mut right) = (0.0, 0u64);
    for from in (0..rows.len).step_by(steps.max(1)) {
        let batch = rows.window(0..1, from..rows.len.min(from + steps.max(1)), carry);
        tape.reset(Want::NOTHING);
        let out = model.forward(&mut tape, params, &batch)?;
        carry = model.carry(&tape, &out);
        loss += Objective::CrossEntropy.apply(&mut tape, &out, &batch, 1.0)?[0];
        let width = tape.shape(out.logits).dim;
        let answers = tape
            .get(out.logits)
            .chunks_exact(width)
            .map(crate::evaluate::argmax);
        right += answers
            .zip(&text[from + 1..])
            .filter(|(got, target)| *got == **target as usize)
            .count() as u64;
    }
    crate::error::finite("loss on the text", &[loss])?;
    Ok(Evaluation {
        loss: loss / rows.len as f64,
        accuracy: right as f64 / rows.len as f64,
        count: rows.len as u64,
    })
}

#[cfg(test)]
mod tests;
