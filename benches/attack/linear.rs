//! Our side of the linear classifiers on 25,000 reviews: features, training, and accuracy on the other 25,000.

use std::path::Path;
use std::time::Instant;

use nn::batch::Example;
use nn::linear::{Features, LinearSvm, NaiveBayes, StepSize, SvmSpec, TermWeighting};
use nn::numeric::argmax;
use nn::victim::Victim;
use serde_json::{Value as Json, json};

use crate::data::{Texts, class, floats};
use crate::kinds::timed;
use crate::projection::DIM;

/// Orders of examples: one alone would say more of its luck than of the machine.
const SEEDS: u64 = 5;

/// Fits of naive Bayes that are timed together: one takes milliseconds.
const FITS: usize = 20;

/// Hinge loss, 20 passes; the mean of several orders.
pub fn svm(dir: &Path) -> Result<Json, String> {
    let (train, test, vocabulary) = open(dir)?;
    let spec = |seed| SvmSpec {
        vocabulary,
        classes: 2,
        alpha: 1e-4,
        steps: StepSize::Optimal,
        epochs: 20,
        features: Features::Words(TermWeighting::Binary),
        seed,
    };
    let start = Instant::now();
    let read = LinearSvm::read(&train, &spec(1), None).map_err(|error| error.to_string())?;
    let features = start.elapsed().as_secs_f64();
    let mut machines = Vec::new();
    let mut line = timed(|| {
        machines.extend((1..=SEEDS).map(|seed| LinearSvm::fit_read(&read, &spec(seed))));
        Ok(Json::Null)
    })?;
    let accuracies = machines.iter().map(|svm| accuracy(svm, &test));
    let accuracies = accuracies.collect::<Result<Vec<f64>, String>>()?;
    let mean = accuracies.iter().sum::<f64>() / SEEDS as f64;
    line["made"] = json!({ "features": features, "accuracy": mean, "accuracies": accuracies });
    Ok(line)
}

/// Counts; there are no features to make.
pub fn bayes(dir: &Path) -> Result<Json, String> {
    let (train, test, vocabulary) = open(dir)?;
    let fit = || NaiveBayes::fit(&train, vocabulary, 2).map_err(|error| error.to_string());
    // On a virtual machine, memory that nobody had before takes longer than counting: the first is told apart.
    let start = Instant::now();
    let bayes = fit()?;
    let first = start.elapsed().as_secs_f64();
    let mut line = timed(|| {
        for _ in 0..FITS {
            std::hint::black_box(fit()?);
        }
        Ok(Json::Null)
    })?;
    let accuracy = accuracy(&bayes, &test)?;
    line["made"] = json!({ "features": 0.0, "first": first, "accuracy": accuracy });
    Ok(line)
}

fn open(dir: &Path) -> Result<(Vec<Example>, Vec<Example>, usize), String> {
    let texts = Texts::open(dir)?;
    let vocabulary = floats(dir, "vectors.f32")?.len() / DIM;
    Ok((texts.examples(true), texts.examples(false), vocabulary))
}

fn accuracy(victim: &dyn Victim, test: &[Example]) -> Result<f64, String> {
    let texts: Vec<_> = test.iter().map(|e| &e.input).collect();
    let said = victim.logits(&texts).map_err(|error| error.to_string())?;
    let pairs = said.iter().zip(test);
    let right = pairs
        .filter(|(z, e)| argmax(z.as_slice().unwrap_or_default()) == class(e) as usize)
        .count();
    Ok(right as f64 / test.len() as f64)
}
