//! `model = "transformer"`: a transformer encoder whose first position is classified.
//!
//! Paper: Vaswani et al. 2017, "Attention is all you need"; the classifier is that of BERT (Devlin et al. 2019).

use nn::models::{NetworkSpec, TransformerSpec};

use super::embedding::{DIM, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::{DROPOUT, LAYERS};
use crate::ParamError;
use crate::contract::description::{Constant, Param};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// Attention heads.
pub const HEADS: Param = Param::int("heads", 4, 1, "Attention heads.");
/// The inner dimension of a block.
pub const INNER: Param =
    Param::int("inner", 1, 1, "Feed-forward dimension; default: 4 x dim.").optional();
/// The longest text.
pub const POSITIONS: Param = Param::int(
    "positions",
    512,
    1,
    "The maximum length of a text, in tokens.",
);
const POOLER: Param = Param::flag(
    "pooler",
    false,
    "Whether a tanh layer comes before the logits, as in BERT.",
);

/// The model.
pub struct Transformer;

impl ModelKind for Transformer {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "transformer",
            file: "stages/models/transformer.rs",
            summary: "A transformer encoder (Vaswani et al. 2017) with BERT's classifier.",
            task: ModelTask::Classify,
            // Heads share a vector: 64 can be divided by 4.
            params: const {
                &[
                    LAYERS,
                    DROPOUT,
                    DIM.or(Constant::Int(64)),
                    HEADS,
                    INNER,
                    POSITIONS,
                    POOLER,
                ]
            },
            reads: "tokens",
            fits: |rows| matches!(rows, ExpectedRows::Tokens { .. }),
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let dim = s.int("dim")?;
        let spec = TransformerSpec {
            vocabulary: vocabulary(data),
            positions: s.int("positions")?,
            dim,
            heads: s.int("heads")?,
            inner: s.maybe_int("inner").unwrap_or(4 * dim),
            layers: s.int("layers")?,
            dropout: s.float("dropout")?,
            pooler: s.flag("pooler")?,
            classes: data.classes,
        };
        network_card(&spec, data, None)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<TransformerSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }
}
