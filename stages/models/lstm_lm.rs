//! `model = "lstm-lm"`: an LSTM language model.
//!
//! Paper: Zaremba et al. 2014, arXiv:1409.2329, "Recurrent neural network regularization".

use nn::models::{LanguageSpec, NetworkSpec};

use super::embedding::{DIM, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::{DROPOUT, LAYERS, UNITS};
use crate::ParamError;
use crate::contract::description::Param;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::{self, Settings};
use crate::tables::model_card::ModelCard;

const TIE_LAYERS: Param = Param::flag(
    "tie_layers",
    false,
    "Whether all layers share their weights; `dim` must then equal `units`.",
);
const INIT: Param = Param::float(
    "init",
    0.1,
    (1e-6, 10.0),
    "Initial weights are uniform between -init and init.",
);
const BPTT: Param = Param::int(
    "bptt",
    35,
    1,
    "The number of tokens that gradients are propagated back through.",
);

/// The model.
pub struct LstmLm;

impl ModelKind for LstmLm {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "lstm-lm",
            file: "stages/models/lstm_lm.rs",
            summary: "An LSTM language model with states carried along the text (Zaremba et al. 2014).",
            task: ModelTask::Language,
            params: const { &[UNITS, LAYERS, DROPOUT, DIM, TIE_LAYERS, INIT, BPTT] },
            reads: "tokens without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let (dim, units, layers) = (s.int("dim")?, s.int("units")?, s.int("layers")?);
        let tie_layers = s.flag("tie_layers")?;
        if tie_layers && (layers == 1 || dim != units) {
            let message =
                "`tie_layers` needs several layers, and `dim` equal to `units`".to_owned();
            let help = format!("layers is {layers}, dim {dim} and units {units}");
            return Err(settings::wrong("tie_layers", message, help));
        }
        let spec = LanguageSpec {
            vocabulary: vocabulary(data),
            dim,
            units,
            layers,
            dropout: s.float("dropout")?,
            tie_layers,
            init: s.float("init")?,
        };
        network_card(&spec, data, None)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<LanguageSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }

    fn recurrent(&self) -> bool {
        true
    }

    /// There are no classes to balance, and a text is read from its beginning once per epoch.
    fn trains_with(&self, _: Settings<'_>, param: &str) -> bool {
        !["balanced", "dev_checks", "restarts", "accept", "probe"].contains(&param)
    }
}
