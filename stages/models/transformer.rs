//! `model = "transformer"`: a transformer encoder whose first position is classified.
//!
//! Paper: Vaswani et al. 2017, "Attention is all you need"; the classifier is that of BERT (Devlin et al. 2019).

use nn::models::{NetworkSpec, TransformerSpec};
use store::Value;

use super::embedding::{DIM, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::{DROPOUT, LAYERS};
use crate::ParamError;
use crate::contract::description::{Constant, Param};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::{self, Settings};
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
const SEGMENTS: Param = Param::flag(
    "segments",
    true,
    "For pairs of texts: whether a segment vector is added to the tokens of each text, as in BERT; default: true.",
)
.optional();

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
                    SEGMENTS,
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
            separator: separator(s, data)?,
        };
        network_card(&spec, data, None)
    }

    fn attends(&self, _: Settings<'_>) -> bool {
        true
    }

    fn reads_pairs(&self) -> bool {
        true
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<TransformerSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }
}

/// The token behind which the second segment begins, if there are segments.
fn separator(s: Settings<'_>, data: &Data) -> Result<Option<u32>, ParamError> {
    match (s.0.get(SEGMENTS.name), data.separator) {
        (Some(_), None) => {
            let message = "`segments` would have no effect: the rows are not pairs of texts";
            Err(settings::wrong(
                SEGMENTS.name,
                message.to_owned(),
                "leave it out",
            ))
        }
        (Some(Value::Bool(false)), _) => Ok(None),
        (_, separator) => Ok(separator),
    }
}
