//! Classifiers: a class per row. Networks are trained batch by batch, other models in one call.

use nn::batch::Example;
use nn::training::{FitSpec, Keep, Metric};

use super::adversarial;
use super::data::TrainingData;
use super::network::NoExtra;
use super::resumable::Pause;
use super::trained::Trained;
use crate::models::entry::ModelKind;
use crate::models::loaded::{Loaded, accuracy};
use crate::tables::history::EpochRecord;
use crate::tables::model_card::ModelCard;
use crate::tables::weights;
use crate::{Failure, Watch, models};

/// Trains the model of a card from new initial weights, or a network from the weights of `start`.
pub fn train(
    card: &ModelCard,
    data: &TrainingData<'_>,
    spec: &FitSpec,
    start: Option<&Loaded>,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    let kind = models::of(card)?;
    match kind.by_gradient() {
        true => {
            let pause = Pause::AnyStep;
            adversarial::train(card, data, spec, start, &mut NoExtra, pause, watch)
        }
        false => at_once(kind, card, data),
    }
}

/// Models that are fitted in one call: no batches, one line of history.
fn at_once(
    kind: &dyn ModelKind,
    card: &ModelCard,
    data: &TrainingData<'_>,
) -> Result<Trained, Failure> {
    let (tensors, epochs) = kind.fit(card, data.train, data.vectors)?;
    let weights = weights::table(card, &tensors);
    // What is reported is what the stored weights say.
    let loaded = Loaded::open(&weights, data.vectors)?;
    let subject = loaded.subject()?;
    let measure = |examples: &[Example]| match examples.is_empty() {
        true => Ok(None),
        false => accuracy(subject.victim(), examples).map(Some),
    };
    let epoch = EpochRecord {
        attempt: 1,
        epoch: epochs as i64,
        step: (epochs * data.train.len()) as i64,
        train_accuracy: measure(data.train)?,
        dev_accuracy: measure(data.dev)?,
        ..EpochRecord::default()
    };
    Ok(Trained {
        card: card.clone(),
        weights,
        history: vec![epoch],
        keep: Keep::Best,
        metric: Metric::Accuracy,
    })
}
