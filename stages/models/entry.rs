//! What a model is to the stages that train and attack it: an entry that describes it, its card, and how it
//! is made again from stored tensors. Knows none by name.

use std::collections::BTreeMap;

use ndarray::ArrayView2;
use nn::autodiff::Params;
use nn::batch::Example;
use nn::linear::{NaiveBayes, Vectors};
use nn::models::{Model, NetworkSpec};
use nn::training::Metric;
use nn::victim::{Neural, Victim};

use crate::contract::description::Param;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::{self, Settings};
use crate::tables::model_card::ModelCard;
use crate::tables::sequences::Form;
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, ParamError, Task, Watch};

/// How a model describes itself.
pub struct ModelEntry {
    /// The name after `model =`.
    pub name: &'static str,
    /// The file it is in.
    pub file: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What it is trained to do.
    pub task: ModelTask,
    /// Its own parameters.
    pub params: &'static [Param],
    /// What it reads, for messages.
    pub reads: &'static str,
    /// Whether it can read such rows.
    pub fits: fn(ExpectedRows) -> bool,
    /// What it has to do with connected word vectors.
    pub vectors: VectorUse,
}

/// What a model is trained to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTask {
    /// Predict the class of a row.
    Classify,
    /// Predict the next token of a text.
    Language,
    /// Produce a target text from a source text.
    Translate,
}

impl ModelTask {
    /// The dev metric that selects the best epoch unless `best` says otherwise.
    pub fn metric(self) -> Metric {
        match self {
            ModelTask::Classify => Metric::Accuracy,
            ModelTask::Language | ModelTask::Translate => Metric::Loss,
        }
    }
}

/// What a model has to do with connected word vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorUse {
    /// They become its embedding: `dim` is theirs.
    Embedding,
    /// It has vectors of its own, or none.
    Own,
}

/// What a model's shape depends on besides its parameters.
pub struct Data {
    /// What rows hold.
    pub form: Form,
    /// How many classes there are; 0 if none are predicted.
    pub classes: usize,
    /// The token that ends every target text, if there are any.
    pub end: Option<u32>,
    /// What separates the two texts of pairs, if the rows are pairs.
    pub separator: Option<u32>,
    /// Connected vectors: their dimension, and the digest of all.
    pub vectors: Option<(usize, String)>,
    /// Names the order of examples.
    pub seed: u64,
    /// Epochs.
    pub epochs: usize,
}

/// Named tensors.
pub type Tensors = BTreeMap<String, Tensor>;

/// A model by name.
pub trait ModelKind: Sync {
    /// Its name, file, summary and parameters.
    fn entry(&self) -> ModelEntry;

    /// Its card, from completed parameters.
    fn card(&self, settings: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError>;

    /// The network of a card, for models that are trained by gradients.
    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let _ = card;
        None
    }

    /// Trains a model that is fitted in one call, without batches: its tensors and epochs.
    fn fit(
        &self,
        card: &ModelCard,
        train: &[Example],
        vectors: Option<&Vectors>,
    ) -> Result<(Vec<Tensor>, usize), Failure> {
        let _ = (card, train, vectors);
        Err(Failure::new("this model is trained batch by batch"))
    }

    /// The model of a card and its tensors.
    fn load(
        &self,
        card: &ModelCard,
        tensors: &Tensors,
        vectors: Option<&Vectors>,
    ) -> Result<Box<dyn LoadedModel>, Failure> {
        let spec = self.network(card);
        let spec = spec.ok_or_else(|| Failure::new("this model is not a network"))?;
        let spec = spec.map_err(not_a_model)?;
        let model = Model::new(spec.as_ref()).map_err(failure)?;
        let params = filled(&model, tensors, vectors)?;
        Ok(Box::new(LoadedNetwork { model, params }))
    }

    /// Whether it reads connected vectors that are not among its weights.
    fn keeps_vectors_outside(&self, settings: Settings<'_>, signals: bool) -> bool {
        let _ = (settings, signals);
        false
    }

    /// Whether it can classify pairs of texts, joined into one sequence.
    fn reads_pairs(&self) -> bool {
        false
    }

    /// The same model with normalised embeddings, if noise can be added to them.
    fn normalised(&self, card: &ModelCard) -> Option<Result<ModelCard, String>> {
        let _ = card;
        None
    }

    /// Whether noise can be added to its embeddings.
    fn takes_noise(&self) -> bool {
        false
    }

    /// Whether it attends to its tokens, so that it can be asked how much.
    fn attends(&self, settings: Settings<'_>) -> bool {
        let _ = settings;
        false
    }

    /// Whether it can be read one step after the other.
    fn steps(&self, settings: Settings<'_>) -> bool {
        let _ = settings;
        false
    }

    /// Whether it has recurrent states to be looked at.
    fn recurrent(&self) -> bool {
        false
    }

    /// Whether a parameter of training has an effect on it.
    fn trains_with(&self, settings: Settings<'_>, param: &str) -> bool {
        let _ = (settings, param);
        true
    }

    /// Whether the card of parameters is that of a stored model.
    fn describes(&self, asked: &ModelCard, stored: &ModelCard) -> bool {
        asked == stored
    }

    /// Whether training draws random numbers.
    fn draws(&self) -> bool {
        true
    }

    /// Whether it is trained by gradients, batch by batch.
    fn by_gradient(&self) -> bool {
        true
    }
}

/// A model with its numbers.
pub trait LoadedModel: Send + Sync {
    /// To be queried and attacked.
    fn victim(&self) -> Result<Subject<'_>, Failure>;

    /// The vectors of the words that it reads, if they are with it but it is not a network.
    fn vectors(&self) -> Option<&Vectors> {
        None
    }

    /// Asks a model that was started for the vectors of its words.
    fn ask_vectors(&self) -> Result<Option<Vectors>, Failure> {
        Ok(None)
    }

    /// Starts what a model needs before it can be queried: a model that lives in a program is asked there.
    fn start(&self, task: &Task<'_>) -> Result<(), Failure> {
        let _ = task;
        Ok(())
    }

    /// Ends what was started.
    fn finish(&self, watch: &dyn Watch) -> Result<(), Failure> {
        let _ = watch;
        Ok(())
    }

    /// The network, if it is one.
    fn network(&self) -> Option<(&Model, &Params<f32>)> {
        None
    }

    /// The word counts, if it is naive Bayes.
    fn naive_bayes(&self) -> Option<&NaiveBayes> {
        None
    }
}

/// A loaded model that can be queried.
pub enum Subject<'a> {
    /// A network, which has gradients and hidden states.
    Network(Neural<'a>),
    /// Anything else.
    Classifier(&'a dyn Victim),
}

impl<'a> Subject<'a> {
    /// What all models answer.
    pub fn victim(&self) -> &(dyn Victim + 'a) {
        match self {
            Subject::Network(network) => network,
            Subject::Classifier(classifier) => *classifier,
        }
    }
}

struct LoadedNetwork {
    model: Model,
    params: Params<f32>,
}

impl LoadedModel for LoadedNetwork {
    fn victim(&self) -> Result<Subject<'_>, Failure> {
        let neural = Neural::new(&self.model, &self.params).map_err(failure)?;
        Ok(Subject::Network(neural))
    }

    fn network(&self) -> Option<(&Model, &Params<f32>)> {
        Some((&self.model, &self.params))
    }
}

/// The error for a card that does not describe its model.
pub fn not_a_model(why: String) -> Failure {
    Failure::new(format!("this table is not a trained model: {why}"))
        .help("connect the output `weights` of a train stage")
}

/// The card of a network. `vectors`: those that stay outside its weights.
pub fn network_card(
    spec: &dyn NetworkSpec,
    data: &Data,
    vectors: Option<&str>,
) -> Result<ModelCard, ParamError> {
    let model = Model::new(spec).map_err(|error| too_large(&error))?;
    let card = ModelCard::network(model.spec(), data.form.words(), vectors);
    Ok(card.of_pairs(data.separator))
}

fn filled(
    model: &Model,
    tensors: &Tensors,
    vectors: Option<&Vectors>,
) -> Result<Params<f32>, Failure> {
    // All numbers are replaced: the seed does not matter.
    let mut params = model.init(0);
    for (name, span) in model.layout().entries() {
        if let (true, Some(vectors)) = (span.frozen(), vectors) {
            params.set(span, vectors.view()).map_err(failure)?;
            continue;
        }
        let tensor = tensors.get(name);
        let tensor = tensor.ok_or_else(|| Failure::new(format!("the weights lack `{name}`")))?;
        let Numbers::Single(numbers) = &tensor.numbers else {
            return Err(Failure::new(format!(
                "`{name}` does not hold 32-bit floats"
            )));
        };
        let values = ArrayView2::from_shape((span.rows, span.cols), numbers.as_slice());
        let values = values.map_err(|_| {
            let (rows, cols, got) = (span.rows, span.cols, numbers.len());
            Failure::new(format!(
                "`{name}` has {got} numbers, expected {rows} x {cols}"
            ))
        })?;
        params.set(span, values).map_err(failure)?;
    }
    Ok(params)
}

/// An error of `nn`.
pub fn failure(error: nn::Error) -> Failure {
    Failure::new(error.to_string())
}

/// The error of a network that cannot be built. Whoever knows the parameters says which to lower.
pub fn too_large(error: &nn::Error) -> ParamError {
    match error {
        nn::Error::Shape { what, got, .. } if *what == "the weights of a model" => {
            let message = format!("the model would have {got} weights, which are too many");
            settings::wrong("", message, "")
        }
        _ => settings::wrong("model", error.to_string(), "see the README of `train`"),
    }
}

/// A tensor of 64-bit floats.
pub fn doubles<'a>(tensors: &'a Tensors, name: &str) -> Result<&'a [f64], Failure> {
    match tensors.get(name).map(|t| &t.numbers) {
        Some(Numbers::Double(numbers)) => Ok(numbers),
        _ => Err(Failure::new(format!(
            "the weights have no tensor `{name}` of 64-bit floats"
        ))),
    }
}
