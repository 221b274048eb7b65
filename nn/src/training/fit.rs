//! The loop of training: epochs of shuffled batches, a look at dev, early stopping, restarts.
//!
//! A fit is a function of (model, start, examples, settings): the same weights on any number
//! of threads, and the same weights when it is stopped at a checkpoint and resumed.

use crate::autodiff::Params;
use crate::batch::{Example, Target};
use crate::error::{Error, Result};
use crate::models::Model;
use crate::objectives::Objective;
use crate::training::extra_examples::NoExtra;
use crate::training::{
    Best, Checkpoint, Classes, Evaluation, Event, ExtraExamples, FitIdentity, FitSpec, Flow, Keep,
    Loss, Metric, Position, Trainer, batches, evaluate,
};
use ndarray::Array2;

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The best weights on dev; the last ones without dev or with [`Keep::Last`].
    pub params: Params<f32>,
    /// Dev at these weights.
    pub dev: Option<Evaluation>,
    /// Steps taken in the last attempt.
    pub steps: u64,
    /// Where to go on from.
    pub checkpoint: Checkpoint,
    /// Whether the caller stopped it.
    pub stopped: bool,
}

/// Called with every event; its result says whether to go on.
type Tell<'t> = &'t mut (dyn FnMut(&Event) -> Flow + Send);

/// Trains from `start`, or goes on from `resume`, which must be of the same model, examples and settings.
pub fn fit(
    model: &Model,
    start: Params<f32>,
    train: &[Example],
    dev: &[Example],
    spec: &FitSpec,
    resume: Option<Checkpoint>,
    tell: Tell,
) -> Result<Fitted> {
    fit_with(model, start, train, dev, spec, resume, &mut NoExtra, tell)
}

/// As [`fit`], with more examples that `extra` supplies along the way. What it supplies is a function
/// of the weights, so a checkpoint of the middle of an epoch does not go on as it would have.
#[expect(clippy::too_many_arguments, reason = "those of `fit` and one more")]
pub fn fit_with(
    model: &Model,
    start: Params<f32>,
    train: &[Example],
    dev: &[Example],
    spec: &FitSpec,
    resume: Option<Checkpoint>,
    extra: &mut dyn ExtraExamples,
    tell: Tell,
) -> Result<Fitted> {
    spec.check()?;
    start.check(model.layout())?;
    // Settings that the examples do not fit are found before anything is learnt.
    Order::new(train, &[], spec)?;
    let identity = FitIdentity::new(model, &start, spec)
        .examples("train", train)
        .examples("dev", dev);
    let mut at = match resume {
        Some(checkpoint) => {
            identity.check(&checkpoint.identity)?;
            checkpoint
        }
        None => Checkpoint::start(identity.clone(), &start, &spec.optimiser),
    };
    let fit = Fit {
        model,
        train,
        dev,
        spec,
        frozen: start.frozen,
    };
    // From inside the pool: entering it for every step makes the times jump.
    rayon::scope(|_| {
        let mut stopped = fit.attempt(&mut at, extra, tell)?;
        while !stopped && at.position.attempt < spec.restarts {
            let so_far = better(spec.metric, at.best.clone(), at.earlier.clone());
            if so_far.as_ref().is_none_or(|b| b.0.accuracy >= spec.accept) {
                break;
            }
            let attempt = at.position.attempt + 1;
            if tell(&Event::Restart { attempt }) == Flow::Stop {
                stopped = true;
                break;
            }
            let fresh = model.init(spec.seed.wrapping_add(u64::from(attempt)));
            at = Checkpoint::start(identity.clone(), &fresh, &spec.optimiser);
            at.position.attempt = attempt;
            at.earlier = so_far;
            stopped = fit.attempt(&mut at, extra, tell)?;
        }
        let best = match spec.keep {
            Keep::Best => better(spec.metric, at.best.clone(), at.earlier.clone()),
            Keep::Last => None,
        };
        let (dev, trained) = best.map_or((None, at.trained.clone()), |(e, w)| (Some(e), w));
        let frozen = fit.frozen;
        let params = Params { trained, frozen };
        let dev_at_last = || evaluate(model, &params, fit.dev);
        let dev = match spec.keep {
            Keep::Last if !stopped && !fit.dev.is_empty() => Some(dev_at_last()?),
            _ => dev,
        };
        Ok(Fitted {
            params,
            dev,
            steps: at.memory.updates,
            checkpoint: at,
            stopped,
        })
    })
}

/// The new weights if they are strictly better than the earlier ones.
fn better(metric: Metric, new: Option<Best>, earlier: Option<Best>) -> Option<Best> {
    match (new, earlier) {
        (Some(new), Some(old)) => Some(if metric.better(&new.0, Some(&old.0)) {
            new
        } else {
            old
        }),
        (new, old) => new.or(old),
    }
}

/// What stays the same over all attempts.
struct Fit<'a> {
    model: &'a Model,
    train: &'a [Example],
    dev: &'a [Example],
    spec: &'a FitSpec,
    frozen: Vec<f32>,
}

impl Fit<'_> {
    /// Goes on from `at` to the end of its attempt; whether the caller stopped it.
    fn attempt(
        &self,
        at: &mut Checkpoint,
        extra: &mut dyn ExtraExamples,
        tell: Tell,
    ) -> Result<bool> {
        let spec = self.spec;
        let seed = spec.seed.wrapping_add(u64::from(at.position.attempt) << 32);
        let params = Params {
            trained: std::mem::take(&mut at.trained),
            frozen: self.frozen.clone(),
        };
        let mut trainer = Trainer::new(self.model, params, spec.optimiser, spec.clip, seed)?;
        trainer.memory = std::mem::take(&mut at.memory);
        trainer.weight_decay = spec.weight_decay;
        let stopped = self.epochs(&mut trainer, at, seed, extra, tell)?;
        at.trained = trainer.params.trained;
        at.memory = trainer.memory;
        Ok(stopped)
    }

    fn epochs(
        &self,
        trainer: &mut Trainer,
        checkpoint: &mut Checkpoint,
        seed: u64,
        extra: &mut dyn ExtraExamples,
        tell: Tell,
    ) -> Result<bool> {
        let (spec, at) = (self.spec, &mut checkpoint.position);
        let objective = match spec.loss {
            Loss::CrossEntropy => Objective::CrossEntropy,
            Loss::Hinge => Objective::Hinge,
        };
        let impatient = |at: &Position| spec.patience > 0 && at.bad >= spec.patience;
        // A fit may end within an epoch, and may be resumed there: the epoch is told of all the same.
        while at.epoch < spec.epochs && !(at.batch == 0 && impatient(at)) {
            let more = extra.epoch(at.epoch, &trainer.params)?;
            let order = Order::new(self.train, &more, spec)?;
            let order = order.batches(spec, seed, at.epoch as u64);
            let known = self.train.len();
            let example = |i: usize| self.train.get(i).unwrap_or_else(|| &more[i - known]);
            for batch in &order[at.batch..] {
                if impatient(at) {
                    break;
                }
                let mut examples: Vec<&Example> = batch.iter().map(|&i| example(i)).collect();
                let step = trainer.memory.updates;
                let beside = extra.batch(step, &trainer.params, batch)?;
                let noise = extra.noise(step, &trainer.params, &examples)?;
                let mut noises: Vec<Option<&Array2<f32>>> = vec![None; examples.len()];
                noises.extend(beside.iter().map(|_| None));
                noises.extend(noise.iter().map(Some));
                let again: Vec<&Example> = examples.iter().copied().take(noise.len()).collect();
                examples.extend(&beside);
                examples.extend(again);
                let factor = spec
                    .schedule
                    .factor(at.epoch, trainer.memory.updates, at.failures);
                let step = trainer.step_with(&examples, &noises, &objective, spec.rate * factor)?;
                at.batch += 1;
                at.loss += step.loss;
                if spec.is_checked_after(at.batch, order.len()) {
                    self.check(&trainer.params, &mut checkpoint.best, at)?;
                }
                let event = Event::Step {
                    step: trainer.memory.updates,
                    loss: step.loss,
                    norm: step.norm,
                    rate: spec.rate * factor,
                };
                if tell(&event) == Flow::Stop {
                    return Ok(true);
                }
            }
            let measured = match at.batch < order.len() {
                // The check that ended it counts once.
                true => self.evaluate_dev(&trainer.params)?,
                false => self.check(&trainer.params, &mut checkpoint.best, at)?,
            };
            let event = Event::Epoch {
                epoch: at.epoch,
                step: trainer.memory.updates,
                loss: at.loss / at.batch as f64,
                train: self.probe(&trainer.params)?,
                dev: measured,
            };
            *at = Position {
                epoch: at.epoch + 1,
                batch: 0,
                loss: 0.0,
                ..*at
            };
            if tell(&event) == Flow::Stop {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Fit<'_> {
    /// None without a dev split.
    fn evaluate_dev(&self, params: &Params<f32>) -> Result<Option<Evaluation>> {
        let evaluated = || evaluate(self.model, params, self.dev);
        (!self.dev.is_empty()).then(evaluated).transpose()
    }

    /// Evaluates on dev, and keeps the weights if they are the best so far.
    fn check(
        &self,
        params: &Params<f32>,
        best: &mut Option<Best>,
        at: &mut Position,
    ) -> Result<Option<Evaluation>> {
        let measured = self.evaluate_dev(params)?;
        if let Some(now) = measured {
            if self.spec.metric.better(&now, best.as_ref().map(|(e, _)| e)) {
                *best = Some((now, params.trained.clone()));
                at.bad = 0;
            } else {
                at.bad += 1;
                at.failures += 1;
            }
        }
        Ok(measured)
    }

    /// How well evenly spaced training examples are answered, without dropout.
    fn probe(&self, params: &Params<f32>) -> Result<Option<Evaluation>> {
        let count = self.spec.probe.min(self.train.len());
        if count == 0 {
            return Ok(None);
        }
        let examples: Vec<Example> = (0..count)
            .map(|k| self.train[k * self.train.len() / count].clone())
            .collect();
        evaluate(self.model, params, &examples).map(Some)
    }
}

/// The order of the examples, of any epoch.
struct Order {
    lengths: Vec<usize>,
    classes: Option<Classes>,
}

impl Order {
    fn new(train: &[Example], more: &[Example], spec: &FitSpec) -> Result<Self> {
        if train.is_empty() {
            return Err(Error::Empty {
                what: "list of training examples",
            });
        }
        let class = |e: &Example| match e.target {
            Target::Class(class) => Ok(class),
            _ => Err(Error::Shape {
                what: "target",
                expected: "a class for every example, since batches are balanced".into(),
                got: "none, or tokens".into(),
            }),
        };
        let classes = if spec.balanced {
            let of_each: Vec<u32> = train.iter().chain(more).map(class).collect::<Result<_>>()?;
            Some(Classes::new(&of_each, spec.batch)?)
        } else {
            None
        };
        Ok(Order {
            lengths: train.iter().chain(more).map(|e| e.input.len()).collect(),
            classes,
        })
    }

    fn batches(&self, spec: &FitSpec, seed: u64, epoch: u64) -> Vec<Vec<usize>> {
        match &self.classes {
            None => batches(&self.lengths, spec.batch, spec.window, seed, epoch),
            Some(classes) => classes.batches(&self.lengths, spec.window, seed, epoch),
        }
    }
}
