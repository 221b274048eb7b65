//! `model = "rnn"`: A vanilla recurrent network (Elman 1990).

use nn::models::{NetworkSpec, RNN};

use super::entry::{Data, ModelEntry, ModelKind};
use super::recurrent;
use crate::ParamError;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// The model.
pub struct Rnn;

impl ModelKind for Rnn {
    fn entry(&self) -> ModelEntry {
        let file = "stages/models/rnn.rs";
        recurrent::entry(
            "rnn",
            file,
            "A vanilla recurrent network (Elman 1990).",
            recurrent::PARAMS,
        )
    }

    fn card(&self, settings: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        recurrent::card(&RNN, settings, data)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        recurrent::network(&RNN, card)
    }

    fn keeps_vectors_outside(&self, settings: Settings<'_>, signals: bool) -> bool {
        recurrent::keeps_vectors_outside(settings, signals)
    }

    fn reads_pairs(&self) -> bool {
        true
    }

    fn recurrent(&self) -> bool {
        true
    }

    fn attends(&self, settings: Settings<'_>) -> bool {
        recurrent::attends(settings)
    }

    fn steps(&self, settings: Settings<'_>) -> bool {
        recurrent::steps(settings)
    }
}
