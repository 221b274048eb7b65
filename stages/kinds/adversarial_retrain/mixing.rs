//! Adversarial rows made during training, against the current weights.

use ndarray::Array2;
use nn::Stream;
use nn::autodiff::Params;
use nn::batch::{Example, Target};
use nn::training::ExtraExamples;

use super::noise::EmbeddingNoise;
use crate::kinds::attack::{Among, AttackInputs, Outcome};
use crate::params::settings::Settings;
use crate::{Failure, Task};

/// When adversarial rows are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Once, against the old model.
    Append,
    /// For every batch.
    Batch,
    /// For every epoch.
    Epoch,
    /// Never: copies of every batch are read with noise in their embeddings.
    Noise,
}

/// Adds adversarial rows to the training of a network, made against its current weights.
pub struct AdversarialMixer<'a> {
    task: &'a Task<'a>,
    inputs: &'a AttackInputs,
    mix: Mix,
    /// For `epoch`: the rows that are attacked.
    places: Vec<usize>,
    /// For `batch`: the row of each training example, by its position.
    rows: Vec<usize>,
    share: f64,
    noise: Option<EmbeddingNoise>,
    failure: Option<Failure>,
}

impl<'a> AdversarialMixer<'a> {
    /// With the rows that it will attack.
    pub fn new(
        task: &'a Task<'a>,
        inputs: &'a AttackInputs,
        mix: Mix,
        items: usize,
        share: f64,
        noise: Option<EmbeddingNoise>,
    ) -> Result<AdversarialMixer<'a>, Failure> {
        let split = Settings(task.params).text("train").unwrap_or("train");
        Ok(AdversarialMixer {
            task,
            inputs,
            mix,
            places: inputs
                .select((split, "train"), items, task.seed, Among::default())?
                .rows,
            rows: inputs.rows.split(split),
            share,
            noise,
            failure: None,
        })
    }

    /// The failure behind an error of the fit, if it was an attack's.
    pub fn blame(&mut self, other: Failure) -> Failure {
        self.failure.take().unwrap_or(other)
    }

    /// `time` names the random numbers of this attack: a row is not attacked in the same way each time.
    fn attack(
        &mut self,
        params: &Params<f32>,
        places: &[usize],
        time: u64,
    ) -> nn::Result<Vec<Example>> {
        let quiet = Quiet(self.task.watch);
        let seed = Stream::new(self.task.seed, "adversarial rows").bits(time);
        let made = self
            .inputs
            .adversarial_with(params, places, self.task.params, seed, &quiet);
        match made {
            Ok(examples) => Ok(examples),
            Err(failure) => {
                let why = failure.message.clone();
                self.failure = Some(failure);
                Err(nn::Error::ExtraExamples { why })
            }
        }
    }
}

impl ExtraExamples for AdversarialMixer<'_> {
    fn epoch(&mut self, epoch: usize, params: &Params<f32>) -> nn::Result<Vec<Example>> {
        match self.mix {
            Mix::Epoch => {
                let places = self.places.clone();
                self.attack(params, &places, epoch as u64)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn batch(
        &mut self,
        step: u64,
        params: &Params<f32>,
        batch: &[usize],
    ) -> nn::Result<Vec<Example>> {
        if self.mix != Mix::Batch {
            return Ok(Vec::new());
        }
        // A share that is asked for is at least one row.
        let wanted = ((batch.len() as f64 * self.share).round() as usize).max(1);
        let places: Vec<usize> = batch.iter().take(wanted).map(|n| self.rows[*n]).collect();
        self.attack(params, &places, step)
    }

    fn noise(
        &mut self,
        _: u64,
        params: &Params<f32>,
        batch: &[&Example],
    ) -> nn::Result<Vec<Array2<f32>>> {
        match (&self.noise, self.inputs.loaded().network()) {
            (Some(noise), Some((model, _))) => noise.of(model, params, batch),
            _ => Ok(Vec::new()),
        }
    }
}

/// An attacked row as an example with its true class.
pub fn adversarial(outcome: Outcome) -> Example {
    Example {
        target: Target::Class(outcome.label),
        input: outcome.trace.input,
    }
}

/// The watch of attacks inside a training: the progress shown is the training's.
struct Quiet<'a>(&'a dyn crate::Watch);

impl crate::Watch for Quiet<'_> {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, line: &str) {
        self.0.log(line);
    }
    fn work(&self, unit: &'static str, amount: u64) {
        self.0.work(unit, amount);
    }
    fn child(&self, usage: crate::Usage) {
        self.0.child(usage);
    }
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}
