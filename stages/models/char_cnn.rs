//! `model = "char-cnn"`: characters to words by convolutions and highways, words to classes by an LSTM.
//!
//! Paper: Kim et al. 2016, "Character-aware neural language models", with a classifier on top.

use nn::models::{CharCnnSpec, Model, NetworkSpec};

use super::embedding::{DIM, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::kim_cnn::KERNELS;
use super::lstm::FORGET_BIAS;
use super::recurrent::{DROPOUT, LAYERS, UNITS};
use crate::ParamError;
use crate::contract::description::Param;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

const WIDTH: Param = Param::int(
    "width",
    6,
    1,
    "The width of the convolution kernels, in characters.",
);
const HIGHWAYS: Param = Param::int(
    "highways",
    2,
    0,
    "Number of highway layers between characters and words.",
);
const INIT: Param = Param::float(
    "init",
    0.05,
    (1e-6, 10.0),
    "Initial weights are uniform between -init and init.",
);

/// The model.
pub struct CharCnn;

impl ModelKind for CharCnn {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "char-cnn",
            file: "stages/models/char_cnn.rs",
            summary: "Character convolutions and highway layers, then an LSTM over words (Kim et al. 2016).",
            task: ModelTask::Classify,
            params: &[
                KERNELS,
                WIDTH,
                HIGHWAYS,
                UNITS,
                LAYERS,
                DROPOUT,
                DIM,
                INIT,
                FORGET_BIAS,
            ],
            reads: "words of characters (char-grid)",
            fits: |rows| rows == ExpectedRows::Grid,
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let spec = CharCnnSpec {
            characters: vocabulary(data),
            dim: s.int("dim")?,
            width: s.int("width")?,
            kernels: s.int("kernels")?,
            highways: s.int("highways")?,
            units: s.int("units")?,
            layers: s.int("layers")?,
            dropout: s.float("dropout")?,
            classes: data.classes,
            init: s.float("init")?,
            forget_bias: s.float("forget_bias")?,
            normalise: false,
        };
        network_card(&spec, data, None)
    }

    fn takes_noise(&self) -> bool {
        true
    }

    fn normalised(&self, card: &ModelCard) -> Option<Result<ModelCard, String>> {
        let normalised = || {
            let spec = CharCnnSpec {
                normalise: true,
                ..card.spec()?
            };
            let model = Model::new(&spec).map_err(|error| error.to_string())?;
            Ok(ModelCard::network(
                model.spec(),
                card.words(),
                card.vectors(),
            ))
        };
        Some(normalised())
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<CharCnnSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }
}
