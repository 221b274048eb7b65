//! Linear SVM by stochastic gradient descent, on bags of words or on vectors.
//!
//! `min over w, b of alpha/2 |w|^2 + mean max(0, 1 - y (w . x + b))`, one binary classifier per class against the rest
//! (a single one for two classes). Step sizes: `optimal` is Bottou's `1 / (alpha (t + t0))` with
//! `t0 = 1 / (alpha sqrt(1 / sqrt(alpha)))`, as in scikit-learn; `pegasos` is `1 / (alpha t)`; or a constant.
//! The bias is not shrunk, and moves a hundredth as fast, as scikit-learn does for sparse data.

use crate::batch::{Example, Sequence};
use crate::error::{Result, same, setting};
use crate::linear::bag_of_words::{labelled, tokens_of};
use crate::linear::features::{FeatureReader, Features, Row, Vectors};
use crate::numeric::Stream;
use crate::victim::{Queries, Victim};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SvmSpec {
    /// Words.
    pub vocabulary: usize,
    /// Classes.
    pub classes: usize,
    /// L2 regularisation.
    pub alpha: f64,
    /// Step sizes.
    pub steps: StepSize,
    /// Epochs.
    pub epochs: usize,
    /// The features of a text.
    pub features: Features,
    /// Names the order of examples.
    #[serde(default)]
    pub seed: u64,
}

/// Step sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSize {
    /// `1 / (alpha (t + t0))`
    Optimal,
    /// `1 / (alpha t)`
    Pegasos,
    /// Always this.
    Constant(f64),
}

/// Texts as a machine reads them, with their classes.
pub struct SvmTexts {
    reading: FeatureReader,
    texts: Vec<(Row, usize)>,
}

/// A trained classifier.
#[derive(Debug)]
pub struct LinearSvm {
    machines: Vec<(Vec<f64>, f64)>,
    reading: FeatureReader,
    forwards: AtomicU64,
}

impl LinearSvm {
    /// Trains every machine over the same order of examples.
    pub fn fit(examples: &[Example], spec: &SvmSpec, vectors: Option<Vectors>) -> Result<Self> {
        Ok(LinearSvm::fit_read(
            &LinearSvm::read(examples, spec, vectors)?,
            spec,
        ))
    }

    /// The first half of [`LinearSvm::fit`]: checks settings and makes features.
    pub fn read(
        examples: &[Example],
        spec: &SvmSpec,
        vectors: Option<Vectors>,
    ) -> Result<SvmTexts> {
        let reading = FeatureReader::new(spec.features, spec.vocabulary, vectors)?;
        let finite = spec.alpha > 0.0 && spec.alpha.is_finite();
        setting("alpha", finite, "above 0", spec.alpha)?;
        setting("epochs", spec.epochs > 0, "above 0", spec.epochs)?;
        let texts = labelled(examples, spec.vocabulary, spec.classes)?
            .into_par_iter()
            .map(|(tokens, y)| (reading.read(tokens), y))
            .collect();
        Ok(SvmTexts { reading, texts })
    }

    /// The second half, for the `spec` that the texts were read with; its steps, epochs and seed may be others.
    pub fn fit_read(read: &SvmTexts, spec: &SvmSpec) -> Self {
        let SvmTexts { reading, texts } = read;
        let count = if spec.classes == 2 { 1 } else { spec.classes };
        let machines = (0..count)
            .into_par_iter()
            .map(|k| machine(texts, spec, reading, if count == 1 { 1 } else { k }))
            .collect();
        LinearSvm {
            machines,
            reading: reading.clone(),
            forwards: AtomicU64::new(0),
        }
    }

    /// A machine that was trained before: [`LinearSvm::machines`] of it.
    pub fn from_machines(
        machines: Vec<(Vec<f64>, f64)>,
        spec: &SvmSpec,
        vectors: Option<Vectors>,
    ) -> Result<Self> {
        let reading = FeatureReader::new(spec.features, spec.vocabulary, vectors)?;
        let count = if spec.classes == 2 { 1 } else { spec.classes };
        same("machines", count, machines.len())?;
        for (w, _) in &machines {
            same("weights of a classifier", reading.size(), w.len())?;
        }
        Ok(LinearSvm {
            machines,
            reading,
            forwards: AtomicU64::new(0),
        })
    }

    /// The weights and the bias of each machine.
    pub fn machines(&self) -> &[(Vec<f64>, f64)] {
        &self.machines
    }

    /// The weight of a word for a class (for class 1 when there are two).
    pub fn weight(&self, class: usize, token: u32) -> f64 {
        let machine = if self.machines.len() == 1 { 0 } else { class };
        self.machines[machine].0[token as usize]
    }

    /// `w . x + b` for each class; for two classes minus and plus half of the one decision.
    pub fn scores(&self, text: &Sequence) -> Result<Vec<f64>> {
        let x = self
            .reading
            .read(tokens_of(text, 0, self.reading.vocabulary())?);
        let score = |(w, b): &(Vec<f64>, f64)| b + self.reading.product(w, &x);
        let scores: Vec<f64> = self.machines.iter().map(score).collect();
        Ok(if let [one] = scores[..] {
            vec![-one / 2.0, one / 2.0]
        } else {
            scores
        })
    }
}

/// One class against the rest. The weights are kept as `scale * w`, so that shrinking them is one product.
fn machine(
    texts: &[(Row, usize)],
    spec: &SvmSpec,
    reading: &FeatureReader,
    class: usize,
) -> (Vec<f64>, f64) {
    let (mut w, mut scale, mut bias) = (vec![0.0; reading.size()], 1.0f64, 0.0);
    let t0 = 1.0 / (spec.alpha * (1.0 / spec.alpha.sqrt()).sqrt());
    let mut t = 0u64;
    for epoch in 0..spec.epochs {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        Stream::new(spec.seed, "svm")
            .item(epoch as u64)
            .shuffle(&mut order);
        for i in order {
            t += 1;
            let step = match spec.steps {
                StepSize::Optimal => 1.0 / (spec.alpha * (t as f64 - 1.0 + t0)),
                StepSize::Pegasos => 1.0 / (spec.alpha * t as f64),
                StepSize::Constant(step) => step,
            };
            let (x, y) = (&texts[i].0, if texts[i].1 == class { 1.0 } else { -1.0 });
            let margin = y * (bias + scale * reading.product(&w, x));
            scale *= (1.0 - step * spec.alpha).max(0.0);
            if scale < 1e-9 {
                w.iter_mut().for_each(|w| *w *= scale);
                scale = 1.0;
            }
            if margin < 1.0 {
                reading.add(&mut w, x, step * y / scale);
                bias += 0.01 * step * y;
            }
        }
    }
    w.iter_mut().for_each(|w| *w *= scale);
    (w, bias)
}

impl Victim for LinearSvm {
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        self.forwards
            .fetch_add(items.len() as u64, Ordering::Relaxed);
        let row =
            |scores: Vec<f64>| Array2::from_shape_fn((1, scores.len()), |(_, k)| scores[k] as f32);
        let each = items.iter();
        each.map(|text| self.scores(text).map(row)).collect()
    }
    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Target;
    use crate::linear::features::TermWeighting;

    fn spec(classes: usize, steps: StepSize) -> SvmSpec {
        SvmSpec {
            vocabulary: 30,
            classes,
            alpha: 1e-3,
            steps,
            epochs: 20,
            features: Features::Words(TermWeighting::Binary),
            seed: 3,
        }
    }

    /// Texts of noise words and one or two words of their class.
    fn texts(n: usize, classes: u32) -> Vec<Example> {
        let s = Stream::new(1, "svm test");
        let text = |i: usize| {
            let y = i as u32 % classes;
            let mut ids: Vec<u32> = (0..6)
                .map(|k| 10 + s.item(i as u64).below(k, 20) as u32)
                .collect();
            ids.extend([y, y]);
            Example {
                input: Sequence::Tokens(ids),
                target: Target::Class(y),
            }
        };
        (0..n).map(text).collect()
    }

    #[test]
    fn separable_texts_are_separated_with_every_schedule() {
        for steps in [
            StepSize::Optimal,
            StepSize::Pegasos,
            StepSize::Constant(0.01),
        ] {
            for classes in [2, 3] {
                let data = texts(120, classes);
                let svm = LinearSvm::fit(&data, &spec(classes as usize, steps), None).unwrap();
                for e in &data {
                    let Target::Class(y) = e.target else {
                        unreachable!()
                    };
                    let z = svm.logits(&[&e.input]).unwrap();
                    assert_eq!(
                        crate::numeric::argmax(z[0].as_slice().unwrap()),
                        y as usize,
                        "{steps:?} {classes}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_objective_is_near_its_minimum() {
        // Subgradient check: random moves of the solution do not lower the objective by more than noise.
        let data = texts(200, 2);
        let spec = SvmSpec {
            alpha: 0.05,
            epochs: 300,
            ..spec(2, StepSize::Optimal)
        };
        let svm = LinearSvm::fit(&data, &spec, None).unwrap();
        let (w, b) = &svm.machines[0];
        let value = |w: &[f64]| {
            let hinge: f64 = data
                .iter()
                .map(|e| {
                    let Target::Class(y) = e.target else {
                        unreachable!()
                    };
                    let x = svm.reading.read(tokens_of(&e.input, 0, 30).unwrap());
                    let y = if y == 1 { 1.0 } else { -1.0 };
                    (1.0 - y * (b + svm.reading.product(w, &x))).max(0.0)
                })
                .sum();
            0.025 * w.iter().map(|w| w * w).sum::<f64>() + hinge / data.len() as f64
        };
        let (s, at) = (Stream::new(2, "moves"), value(w));
        for k in 0..200 {
            let moved: Vec<f64> = w
                .iter()
                .enumerate()
                .map(|(j, w)| w + 0.2 * s.item(k).normal(j as u64))
                .collect();
            assert!(value(&moved) > at - 1e-3, "{} {at}", value(&moved));
        }
    }
}
