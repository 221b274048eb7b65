//! `model = "lstm"`: Long short-term memory (Hochreiter and Schmidhuber 1997).

use nn::models::{LSTM, NetworkSpec};

use super::embedding::{DIM, VECTORS};
use super::entry::{Data, ModelEntry, ModelKind};
use super::recurrent::{
    self, ATTENTION, BIDIRECTIONAL, DROPOUT, HIDDEN, LAYERS, LEARNED_STATE, UNITS,
};
use crate::ParamError;
use crate::contract::description::Param;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

pub(super) const FORGET_BIAS: Param = Param::float(
    "forget_bias",
    1.0,
    (-10.0, 10.0),
    "The initial bias of the forget gate.",
);

const LSTM_PARAMS: &[Param] = &[
    UNITS,
    LAYERS,
    DROPOUT,
    VECTORS,
    DIM,
    BIDIRECTIONAL,
    ATTENTION,
    HIDDEN,
    LEARNED_STATE,
    FORGET_BIAS,
];

/// The model.
pub struct Lstm;

impl ModelKind for Lstm {
    fn entry(&self) -> ModelEntry {
        let file = "stages/models/lstm.rs";
        recurrent::entry(
            "lstm",
            file,
            "Long short-term memory (Hochreiter and Schmidhuber 1997).",
            LSTM_PARAMS,
        )
    }

    fn card(&self, settings: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        recurrent::card(&LSTM, settings, data)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        recurrent::network(&LSTM, card)
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
