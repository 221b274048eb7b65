//! Training and measuring a language model on one long text, states carried from window to window.
//!
//! The text is cut into `batch` rows of equal length; a window is `steps` tokens of every row, its targets the
//! tokens one later. States start at zero in every epoch (Zaremba et al. 2014). Gradients stop at the window.

use crate::batch::{Batch, Carry, Input, Targets};
use crate::error::setting;
use crate::evaluate::Evaluation;
use crate::fit::{Event, Flow};
use crate::layers::Lens;
use crate::model::{Model, Spec};
use crate::objective::Objective;
use crate::optimiser::{Clip, Optimiser};
use crate::params::Params;
use crate::schedule::Schedule;
use crate::tape::{Tape, Want};
use crate::trainer::{Trainer, shards};
use crate::{Error, Result};
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
    setting("epochs", spec.epochs > 0, "above 0", spec.epochs)?;
    setting("steps", spec.steps > 0, "above 0", spec.steps)?;
    setting(
        "rate",
        spec.rate > 0.0 && spec.rate.is_finite(),
        "above 0",
        spec.rate,
    )?;
    spec.schedule.check()?;
    let rows = Rows::new(text, spec.batch)?;
    let zero = zero_states(model)?;
    rayon::scope(|_| {
        let mut trainer = Trainer::new(model, start, spec.optimiser, spec.clip, spec.seed)?;
        let (mut measured, mut stopped) = (Vec::new(), false);
        'epochs: for epoch in 0..spec.epochs {
            let parts = shards(spec.batch);
            let mut carry: Vec<Carry<f32>> = parts.iter().map(|r| zero.of(r.len())).collect();
            let (mut sum, mut windows) = (0.0, 0);
            for from in (0..rows.len).step_by(spec.steps) {
                let window = from..rows.len.min(from + spec.steps);
                let states = std::mem::take(&mut carry);
                let batches: Vec<Batch<f32>> = parts
                    .iter()
                    .zip(states)
                    .map(|(part, carry)| rows.window(part.clone(), window.clone(), carry))
                    .collect();
                let rate = spec.rate * spec.schedule.factor(epoch, trainer.memory.updates, 0);
                let step = trainer.step(&batches, &Objective::CrossEntropy, rate)?;
                carry = step.carry;
                (sum, windows) = (sum + step.loss, windows + 1);
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
            let found = if dev.is_empty() {
                None
            } else {
                Some(evaluate_stream(model, &trainer.params, dev, spec.steps)?)
            };
            measured.extend(found);
            if tell(&Event::Epoch {
                epoch,
                loss: sum / f64::from(windows),
                dev: found,
            }) == Flow::Stop
            {
                stopped = true;
                break;
            }
        }
        Ok(FittedStream {
            params: trainer.params,
            dev: measured,
            stopped,
        })
    })
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

/// A text cut into rows; the last token of a row is only a target.
struct Rows<'a> {
    text: &'a [u32],
    stride: usize,
    len: usize,
}

impl<'a> Rows<'a> {
    fn new(text: &'a [u32], batch: usize) -> Result<Self> {
        setting("batch", batch > 0, "above 0", batch)?;
        let stride = text.len() / batch;
        if stride < 2 {
            return Err(Error::Shape {
                what: "text",
                expected: format!("at least {} tokens", 2 * batch),
                got: text.len().to_string(),
            });
        }
        Ok(Rows {
            text,
            stride,
            len: stride - 1,
        })
    }

    fn window(
        &self,
        part: std::ops::Range<usize>,
        steps: std::ops::Range<usize>,
        carry: Carry<f32>,
    ) -> Batch<f32> {
        let lens: Lens = vec![steps.len(); part.len()].into();
        let ids = |late: usize| {
            steps
                .clone()
                .flat_map(|t| {
                    part.clone()
                        .map(move |b| self.text[b * self.stride + t + late])
                })
                .collect::<Vec<u32>>()
        };
        Batch {
            input: Input::Tokens(ids(0)),
            targets: Targets::Tokens(ids(1), lens.clone()),
            lens,
            carry: Some(carry),
        }
    }
}

/// Zero states of every layer.
struct Zero {
    layers: usize,
    units: usize,
}

impl Zero {
    fn of(&self, items: usize) -> Carry<f32> {
        vec![(vec![0.0; items * self.units], vec![0.0; items * self.units]); self.layers]
    }
}

fn zero_states(model: &Model) -> Result<Zero> {
    match model.spec() {
        Spec::Language(spec) => Ok(Zero {
            layers: spec.layers,
            units: spec.units,
        }),
        _ => Err(Error::Missing {
            what: "next token to predict: it is no language model",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
