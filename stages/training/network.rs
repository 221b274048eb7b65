//! A network trained batch by batch: where it starts, the fit, and its weights as tensors.

use nn::autodiff::Params;
use nn::models::Model;
use nn::training::{ExtraExamples, FitSpec, fit_with};

use super::checkpoint;
use super::data::TrainingData;
use super::epochs::Epochs;
use super::resumable::{self, Pause, Paused};
use super::trained::Trained;
use crate::models::entry::not_a_model;
use crate::models::failure;
use crate::models::loaded::Loaded;
use crate::tables::history::EpochRecord;
use crate::tables::model_card::ModelCard;
use crate::tables::weights;
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, Watch, models};

/// The network of a card, or none if it is fitted in one call.
pub fn build(card: &ModelCard) -> Result<Option<Model>, Failure> {
    let Some(spec) = models::of(card)?.network(card) else {
        return Ok(None);
    };
    let spec = spec.map_err(not_a_model)?;
    Model::new(spec.as_ref()).map(Some).map_err(failure)
}

/// The weights to start from: those of a trained model, or new ones with connected vectors in their place.
pub fn initial(
    model: &Model,
    data: &TrainingData<'_>,
    start: Option<&Loaded>,
) -> Result<Params<f32>, Failure> {
    if let Some((_, params)) = start.and_then(Loaded::network) {
        return Ok(params.clone());
    }
    let mut params = model.init(data.seed);
    if let Some(bytes) = data.pretrained {
        checkpoint::load(model, &mut params, bytes)?;
    }
    if let (Some(span), Some(vectors)) = (model.layout().find("embedding"), data.vectors) {
        params.set(span, vectors.view()).map_err(|e| {
            failure(e).help("connect `vectors` made for the vocabulary of these tokens")
        })?;
    }
    Ok(params)
}

/// How a network is trained.
pub struct Fit<'a> {
    /// The settings.
    pub spec: &'a FitSpec,
    /// A trained model to continue from.
    pub start: Option<&'a Loaded>,
    /// What the log says of an epoch.
    pub shown: fn(&EpochRecord) -> String,
    /// Where it may pause to save a checkpoint.
    pub pause: Pause,
    /// Who watches.
    pub watch: &'a dyn Watch,
}

impl Fit<'_> {
    /// Trains the network of a card on shuffled batches, and on what `extra` brings.
    pub fn run(
        &self,
        card: &ModelCard,
        model: &Model,
        data: &TrainingData<'_>,
        extra: &mut dyn ExtraExamples,
    ) -> Result<Trained, Failure> {
        let (spec, shown) = (self.spec, self.shown);
        let start = initial(model, data, self.start)?;
        let steps = data.train.len().div_ceil(spec.batch) * spec.epochs;
        let mut epochs = Epochs::new(self.watch, steps);
        let record = |epochs: &mut Epochs<'_>, event: &_| epochs.record(event, shown);
        let (train, dev) = (data.train, data.dev);
        let params = resumable::run(&mut epochs, self.pause, record, |from, tell| {
            let fitted = fit_with(model, start.clone(), train, dev, spec, from, extra, tell)?;
            Ok(Paused {
                outcome: fitted.params,
                stopped: fitted.stopped,
                checkpoint: fitted.checkpoint,
            })
        })?;
        Ok(Trained {
            card: card.clone(),
            weights: weights::table(card, &tensors(card, model, &params)),
            history: epochs.history,
            keep: spec.keep,
            metric: spec.metric,
        })
    }
}

/// The weights of a network that are its own: connected frozen vectors are not.
pub fn tensors(card: &ModelCard, model: &Model, params: &Params<f32>) -> Vec<Tensor> {
    let outside = card.vectors().is_some();
    let own = model.layout().entries();
    own.filter(|(_, span)| !(outside && span.frozen()))
        .map(|(name, span)| Tensor {
            name: name.to_owned(),
            shape: [span.rows, span.cols],
            numbers: Numbers::Single(params.view(span).iter().copied().collect()),
        })
        .collect()
}

/// No rows but those of the training split.
pub struct NoExtra;

impl ExtraExamples for NoExtra {}
