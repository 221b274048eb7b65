//! `model = "seq2seq"`: a bidirectional LSTM encoder and an LSTM decoder with attention.
//!
//! Paper: Bahdanau et al. 2015, arXiv:1409.0473, "Neural machine translation by jointly learning to align and
//! translate". Differs: LSTM layers instead of GRU layers. Decoding starts at the padding token, as in T5 and Marian.

use nn::models::{NetworkSpec, Seq2seqSpec};

use super::embedding::{DIM, start_and_end, vocabulary};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::{ATTENTION, DROPOUT, LAYERS, UNITS};
use crate::ParamError;
use crate::contract::description::{Constant, MOST, Param, Range};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// A decoder always attends.
const OWN_ATTENTION: Param = Param {
    range: Range::Ints(1, MOST),
    ..ATTENTION.or(Constant::Int(64))
};

const REVERSED: Param = Param::flag(
    "reversed",
    false,
    "Whether the source is read from its end: the decoder starts from the state at its first token.",
)
.optional();

/// The model.
pub struct Seq2seq;

impl ModelKind for Seq2seq {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "seq2seq",
            file: "stages/models/seq2seq.rs",
            summary: "An LSTM encoder and decoder with attention (Bahdanau et al. 2015).",
            task: ModelTask::Translate,
            params: const { &[UNITS, LAYERS, DROPOUT, DIM, OWN_ATTENTION, REVERSED] },
            reads: "pairs of token sequences without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let (go, eos) = start_and_end(data);
        let spec = Seq2seqSpec {
            source: vocabulary(data),
            target: vocabulary(data),
            go,
            eos,
            dim: s.int("dim")?,
            units: s.int("units")?,
            layers: s.int("layers")?,
            attention: s.int("attention")?,
            dropout: s.float("dropout")?,
            reversed: s.flag("reversed").unwrap_or(false),
        };
        network_card(&spec, data, None)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<Seq2seqSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }

    fn recurrent(&self) -> bool {
        true
    }

    /// There are no classes to balance.
    fn trains_with(&self, _: Settings<'_>, param: &str) -> bool {
        param != "balanced"
    }
}
