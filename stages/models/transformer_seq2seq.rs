//! `model = "transformer-seq2seq"`: a transformer encoder and decoder.
//!
//! Paper: Vaswani et al. 2017, arXiv:1706.03762. Differs: learned positions, GELU, and separate embeddings for source
//! and target. Decoding starts at the padding token, as in T5 and Marian.

use nn::models::{NetworkSpec, TransformerSeq2seqSpec};

use super::embedding::{DIM, start_and_end, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::{DROPOUT, LAYERS};
use super::transformer::{HEADS, INNER, POSITIONS};
use crate::ParamError;
use crate::contract::description::Constant;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// The model.
pub struct TransformerSeq2seq;

impl ModelKind for TransformerSeq2seq {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "transformer-seq2seq",
            file: "stages/models/transformer_seq2seq.rs",
            summary: "A transformer encoder and decoder (Vaswani et al. 2017).",
            task: ModelTask::Translate,
            params: const {
                &[
                    LAYERS,
                    DROPOUT,
                    DIM.or(Constant::Int(64)),
                    HEADS,
                    INNER,
                    POSITIONS,
                ]
            },
            reads: "pairs of token sequences without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let (go, eos) = start_and_end(data);
        let dim = s.int("dim")?;
        let spec = TransformerSeq2seqSpec {
            source: vocabulary(data),
            target: vocabulary(data),
            go,
            eos,
            positions: s.int("positions")?,
            dim,
            heads: s.int("heads")?,
            inner: s.maybe_int("inner").unwrap_or(4 * dim),
            layers: s.int("layers")?,
            dropout: s.float("dropout")?,
        };
        network_card(&spec, data, None)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<TransformerSeq2seqSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }

    /// There are no classes to balance.
    fn trains_with(&self, _: Settings<'_>, param: &str) -> bool {
        param != "balanced"
    }
}
