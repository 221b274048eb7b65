//! Classifiers that also learn from rows made while they train, against their current weights.

use nn::training::{ExtraExamples, FitSpec};

use super::data::TrainingData;
use super::epochs::accuracies;
use super::network::{self, Fit};
use super::resumable::Pause;
use super::trained::Trained;
use crate::models::loaded::Loaded;
use crate::tables::model_card::ModelCard;
use crate::{Failure, Watch};

/// Trains the network of a card on its rows and on what `extra` brings for an epoch or a batch. What it brings is a
/// function of the weights at that moment, so such a fit pauses only between epochs.
pub fn train(
    card: &ModelCard,
    data: &TrainingData<'_>,
    spec: &FitSpec,
    start: Option<&Loaded>,
    extra: &mut dyn ExtraExamples,
    pause: Pause,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    let model = network::build(card)?;
    let model = model.ok_or_else(|| Failure::new("this model is not trained batch by batch"))?;
    let fit = Fit {
        spec,
        start,
        shown: accuracies,
        pause,
        watch,
    };
    fit.run(card, &model, data, extra)
}
