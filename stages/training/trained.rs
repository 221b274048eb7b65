//! A trained model, and the table `model` that describes it in one row.

use arrow::record_batch::RecordBatch;
use nn::batch::Target;
use nn::training::{Keep, Metric};

use super::data::TrainingData;
use crate::tables::history::EpochRecord;
use crate::tables::model::{self, ModelRow};
use crate::tables::model_card::ModelCard;
use crate::tables::weights;

/// A trained model.
pub struct Trained {
    /// What it is.
    pub card: ModelCard,
    /// `name, shape, values`
    pub weights: RecordBatch,
    /// Epoch by epoch.
    pub history: Vec<EpochRecord>,
    /// Which epoch's weights these are.
    pub keep: Keep,
    /// What makes an epoch the best.
    pub metric: Metric,
}

impl Trained {
    /// The epoch whose weights were kept.
    fn kept(&self) -> Option<&EpochRecord> {
        match self.keep {
            Keep::Last => self.history.last(),
            Keep::Best => self.best(),
        }
    }

    /// The first of the best, as the fit itself chooses; the last one where dev was not measured.
    fn best(&self) -> Option<&EpochRecord> {
        // As a number of which more is better.
        let measured = |epoch: &EpochRecord| match self.metric {
            Metric::Accuracy => epoch.dev_accuracy,
            Metric::Loss => epoch.dev_loss.map(|loss| -loss),
        };
        let mut best: Option<&EpochRecord> = None;
        for epoch in &self.history {
            match best.and_then(measured) {
                Some(old) if measured(epoch).is_none_or(|new| new <= old) => {}
                _ => best = Some(epoch),
            }
        }
        best
    }
}

/// The table `model`.
pub fn described(trained: &Trained, data: &TrainingData<'_>) -> RecordBatch {
    let classes = data.train.iter().filter_map(|e| match e.target {
        Target::Class(label) => Some(i64::from(label) + 1),
        _ => None,
    });
    let numbers = weights::read(&trained.weights).map_or(0, |(_, tensors)| {
        tensors.values().map(|t| t.shape[0] * t.shape[1]).sum()
    });
    let (kept, last) = (trained.kept(), trained.history.last());
    model::write(&ModelRow {
        model: &trained.card.model(),
        weights: numbers,
        classes: classes.max().unwrap_or_default(),
        rows: data.train.len(),
        attempts: last.map_or(0, |e| e.attempt),
        epochs: last.map_or(0, |e| e.epoch),
        steps: last.map_or(0, |e| e.step),
        best_epoch: kept.map_or(0, |e| e.epoch),
        train_accuracy: kept.and_then(|e| e.train_accuracy),
        dev_accuracy: kept.and_then(|e| e.dev_accuracy),
        card: trained.card.text(),
    })
}
