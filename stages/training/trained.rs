//! A trained model, and the table `model` that describes it in one row.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::Target;
use nn::training::{Keep, Metric};

use super::data::TrainingData;
use super::history::EpochRecord;
use crate::tables::model_card::ModelCard;
use crate::tables::weights;
use crate::tables::weights::with_metadata;

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

/// The columns of the table `model`.
pub const MODEL: &[&str] = &[
    "model",
    "weights",
    "classes",
    "rows",
    "attempts",
    "epochs",
    "steps",
    "best_epoch",
    "train_accuracy",
    "dev_accuracy",
    "card",
];

/// The model card as a table of one row, as [`MODEL`] says.
pub fn model(trained: &Trained, data: &TrainingData<'_>) -> RecordBatch {
    let classes = data.train.iter().filter_map(|e| match e.target {
        Target::Class(label) => Some(i64::from(label) + 1),
        _ => None,
    });
    let numbers = weights::read(&trained.weights).map_or(0, |(_, tensors)| {
        tensors.values().map(|t| t.shape[0] * t.shape[1]).sum()
    });
    let (kept, last) = (trained.kept(), trained.history.last());
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text.to_owned()])) };
    let int = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let columns = vec![
        ("model", text(&trained.card.model())),
        ("weights", int(numbers as i64)),
        ("classes", int(classes.max().unwrap_or_default())),
        ("rows", int(data.train.len() as i64)),
        ("attempts", int(last.map_or(0, |e| e.attempt))),
        ("epochs", int(last.map_or(0, |e| e.epoch))),
        ("steps", int(last.map_or(0, |e| e.step))),
        ("best_epoch", int(kept.map_or(0, |e| e.epoch))),
        ("train_accuracy", float(kept.and_then(|e| e.train_accuracy))),
        ("dev_accuracy", float(kept.and_then(|e| e.dev_accuracy))),
        ("card", text(trained.card.text())),
    ];
    with_metadata(columns, Metadata::default())
}
