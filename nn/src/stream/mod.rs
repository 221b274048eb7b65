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
    Ok(Evaluation {
        loss: loss / rows.len as f64,
        accuracy: right as f64 / rows.len as f64,
        count: rows.len as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Spec;
    use crate::models::LanguageSpec;

    fn model() -> Model {
        Model::new(&Spec::Language(LanguageSpec {
            vocabulary: 8,
            dim: 6,
            units: 12,
            layers: 2,
            dropout: 0.1,
            tie_layers: false,
            init: 0.2,
        }))
        .unwrap()
    }

    fn spec() -> StreamSpec {
        StreamSpec {
            epochs: 12,
            batch: 20,
            steps: 5,
            optimiser: Optimiser::ADAM,
            rate: 0.02,
            schedule: Schedule::Constant,
            clip: Clip::Norm(5.0),
            seed: 1,
        }
    }

    /// 0 1 2 3 4 5 6 7, again and again: after the first tokens nothing is uncertain.
    fn cycle(n: usize) -> Vec<u32> {
        (0..n as u32).map(|i| i % 8).collect()
    }

    #[test]
    fn a_cycle_is_learnt_with_the_same_bits_on_any_number_of_threads() {
        let (model, text) = (model(), cycle(2000));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                fit_stream(
                    &model,
                    model.init(1),
                    &text,
                    &text[..200],
                    &spec(),
                    &mut |_| Flow::Continue,
                )
            })
            .unwrap()
        };
        let one = run(1);
        assert!(
            one.dev.last().unwrap().accuracy > 0.95
                && one.dev.last().unwrap().loss < one.dev[0].loss,
            "{:?}",
            one.dev
        );
        assert_eq!(one, run(2));
        assert_eq!(one, run(8));
    }

    #[test]
    fn a_run_that_was_stopped_and_resumed_ends_with_the_same_bits() {
        let (model, text) = (model(), cycle(700));
        let spec = StreamSpec {
            epochs: 3,
            batch: 18,
            schedule: Schedule::Plateau { factor: 0.5 },
            ..spec()
        };
        let from = |resume: Option<Checkpoint>, stop: usize| {
            let mut events = 0;
            let mut tell = |_: &Event| {
                events += 1;
                if events == stop {
                    Flow::Stop
                } else {
                    Flow::Continue
                }
            };
            let texts = [&text[..], &text[..50]];
            run(&model, model.init(1), texts, &spec, resume, &mut tell).unwrap()
        };
        let whole = from(None, usize::MAX);
        assert!(!whole.stopped && whole.dev.len() == 3);
        // An epoch is 8 windows and its own event.
        for stop in [1, 4, 8, 9, 10, 18, 20, 27] {
            let part = from(None, stop);
            assert!(part.stopped, "{stop}");
            let kept = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
            assert_eq!(from(Some(kept), usize::MAX), whole, "stopped at {stop}");
        }
        let kept = from(None, 4).checkpoint;
        let other = &text[1..];
        let error = resume_stream(&model, model.init(1), other, &[], &spec, kept, &mut |_| {
            Flow::Continue
        })
        .unwrap_err();
        assert!(
            error.to_string().contains("text: expected 699 with"),
            "{error}"
        );
    }

    #[test]
    fn windows_do_not_change_the_measure_because_states_are_carried() {
        let (model, text) = (model(), cycle(61));
        let params = model.init(1);
        let whole = evaluate_stream(&model, &params, &text, 60).unwrap();
        for steps in [1, 7, 60, 100] {
            let cut = evaluate_stream(&model, &params, &text, steps).unwrap();
            assert!(
                (cut.loss - whole.loss).abs() < 1e-12 && cut.count == 60,
                "{steps}"
            );
        }
    }

    #[test]
    fn short_texts_and_other_models_are_errors() {
        let model = model();
        assert!(
            fit_stream(&model, model.init(1), &cycle(39), &[], &spec(), &mut |_| {
                Flow::Continue
            })
            .is_err()
        );
        assert!(evaluate_stream(&model, &model.init(1), &[1], 5).is_err());
    }
}
