//! `model = "kim-cnn"`: convolutions over word windows of several widths, then the maximum over time.
//!
//! Paper: Kim 2014, "Convolutional neural networks for sentence classification".

use nn::models::{KimCnnSpec, NetworkSpec};
use store::Value;

use super::embedding::{DIM, VECTORS, frozen, outside, reads};
use super::entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, network_card};
use super::recurrent::DROPOUT;
use crate::ParamError;
use crate::contract::description::{Param, Presence, Range, Type};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// Kernels of each width.
pub const KERNELS: Param = Param::int("kernels", 100, 1, "Convolution kernels of each width.");
const WIDTHS: Param = Param {
    name: "widths",
    ty: Type::Ints,
    presence: Presence::Default(|| Value::List([3, 4, 5].map(Value::Int).to_vec())),
    range: Range::Ints(1, 1000),
    help: "The widths of the convolution kernels, in words.",
    ..Param::PLAIN
};
const PADDING: Param = Param::int("padding", 4, 0, "Zero vectors before and after each text.");
const MAX_NORM: Param = Param::float(
    "max_norm",
    3.0,
    (0.0, 1e9),
    "The maximum L2 norm of an output unit's weights; 0 = off.",
);

/// The model.
pub struct KimCnn;

impl ModelKind for KimCnn {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "kim-cnn",
            file: "stages/models/kim_cnn.rs",
            summary: "Convolutions over word windows, max pooling over time (Kim 2014).",
            task: ModelTask::Classify,
            params: &[KERNELS, WIDTHS, PADDING, MAX_NORM, DROPOUT, VECTORS, DIM],
            reads: "tokens or signals",
            fits: |rows| matches!(rows, ExpectedRows::Tokens { .. } | ExpectedRows::Signals),
            vectors: VectorUse::Embedding,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let reads = reads(s, data)?;
        let outside = outside(&reads, data);
        let widths = s.0.get("widths").and_then(Value::as_list);
        let widths = widths.unwrap_or_default().iter();
        let spec = KimCnnSpec {
            reads,
            widths: widths.filter_map(|w| Some(w.as_int()? as usize)).collect(),
            kernels: s.int("kernels")?,
            padding: s.int("padding")?,
            dropout: s.float("dropout")?,
            max_norm: s.float("max_norm")?,
            classes: data.classes,
        };
        network_card(&spec, data, outside)
    }

    fn network(&self, card: &ModelCard) -> Option<Result<Box<dyn NetworkSpec>, String>> {
        let spec = card.spec::<KimCnnSpec>();
        Some(spec.map(|spec| Box::new(spec) as Box<dyn NetworkSpec>))
    }

    fn keeps_vectors_outside(&self, settings: Settings<'_>, signals: bool) -> bool {
        frozen(settings) && !signals
    }
}
