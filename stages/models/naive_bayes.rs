//! `model = "naive-bayes"`: multinomial naive Bayes with Laplace smoothing and a uniform prior.

use nn::batch::Example;
use nn::linear::{NaiveBayes as Counts, Vectors};

use super::embedding::vocabulary;
use super::entry::{
    Data, LoadedModel, ModelEntry, ModelKind, ModelTask, Subject, Tensors, VectorUse, doubles,
    failure, not_a_model,
};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::{ModelCard, json};
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, ParamError};

/// The model.
pub struct NaiveBayes;

impl ModelKind for NaiveBayes {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "naive-bayes",
            file: "stages/models/naive_bayes.rs",
            summary: "Multinomial naive Bayes with Laplace smoothing and a uniform prior.",
            task: ModelTask::Classify,
            params: &[],
            reads: "tokens without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, _: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        Ok(ModelCard::written(
            "naive_bayes",
            &[
                ("words", json(data.form.words())),
                ("vocabulary", json(vocabulary(data))),
                ("classes", json(data.classes)),
            ],
        ))
    }

    fn fit(
        &self,
        card: &ModelCard,
        train: &[Example],
        _: Option<&Vectors>,
    ) -> Result<(Vec<Tensor>, usize), Failure> {
        let (vocabulary, classes) = sizes(card)?;
        let counts = Counts::fit(train, vocabulary, classes).map_err(failure)?;
        let counts = Tensor {
            name: "counts".to_owned(),
            shape: [classes, vocabulary],
            numbers: Numbers::Double(counts.counts().iter().map(|c| *c as f64).collect()),
        };
        Ok((vec![counts], 1))
    }

    fn load(
        &self,
        card: &ModelCard,
        tensors: &Tensors,
        _: Option<&Vectors>,
    ) -> Result<Box<dyn LoadedModel>, Failure> {
        let (vocabulary, classes) = sizes(card)?;
        let counts = doubles(tensors, "counts")?;
        let counts = counts.iter().map(|c| *c as u64).collect();
        let counts = Counts::from_counts(counts, vocabulary, classes).map_err(failure)?;
        Ok(Box::new(Loaded(counts)))
    }

    fn trains_with(&self, _: Settings<'_>, param: &str) -> bool {
        ["train", "dev"].contains(&param)
    }

    fn draws(&self) -> bool {
        false
    }

    fn by_gradient(&self) -> bool {
        false
    }
}

fn sizes(card: &ModelCard) -> Result<(usize, usize), Failure> {
    let size = |name| card.size(name).map_err(not_a_model);
    Ok((size("vocabulary")?, size("classes")?))
}

struct Loaded(Counts);

impl LoadedModel for Loaded {
    fn victim(&self) -> Result<Subject<'_>, Failure> {
        Ok(Subject::Classifier(&self.0))
    }

    fn naive_bayes(&self) -> Option<&Counts> {
        Some(&self.0)
    }
}
