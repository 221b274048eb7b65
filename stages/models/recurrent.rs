//! What the recurrent classifiers share: their parameters and how a specification is made of them. Knows no
//! kind of layer.

use nn::models::{CellKind, NetworkSpec, RecurrentSpec};

use super::embedding::{DIM, VECTORS, frozen, outside, reads};
use super::entry::{Data, ModelEntry, ModelTask, VectorUse, network_card};
use crate::ParamError;
use crate::contract::description::Param;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;

/// Hidden units.
pub const UNITS: Param = Param::int("units", 64, 1, "Hidden units of a layer.");
/// Stacked layers.
pub const LAYERS: Param = Param::int("layers", 1, 1, "Number of stacked layers.");
/// Dropout.
pub const DROPOUT: Param = Param::float(
    "dropout",
    0.0,
    (0.0, 0.999),
    "Dropout probability while training.",
);
/// Both directions.
pub const BIDIRECTIONAL: Param = Param::flag(
    "bidirectional",
    false,
    "Whether each layer also reads backward.",
);
/// Attention pooling.
pub const ATTENTION: Param = Param::int(
    "attention",
    0,
    0,
    "Hidden dimension of the attention scores; 0 = no attention, the last state is classified.",
);
/// A layer before the logits.
pub const HIDDEN: Param = Param::int(
    "hidden",
    0,
    0,
    "Units of a ReLU layer before the logits; 0 = no such layer.",
);
/// Initial states.
pub const LEARNED_STATE: Param = Param::flag(
    "learned_state",
    false,
    "Whether the initial states are learned.",
);

/// The parameters of a recurrent classifier.
pub const PARAMS: &[Param] = &[
    UNITS,
    LAYERS,
    DROPOUT,
    VECTORS,
    DIM,
    BIDIRECTIONAL,
    ATTENTION,
    HIDDEN,
    LEARNED_STATE,
];

/// The entry of a recurrent classifier.
pub const fn entry(
    name: &'static str,
    file: &'static str,
    summary: &'static str,
    params: &'static [Param],
) -> ModelEntry {
    ModelEntry {
        name,
        file,
        summary,
        task: ModelTask::Classify,
        params,
        reads: "tokens or signals",
        fits: |rows| matches!(rows, ExpectedRows::Tokens { .. } | ExpectedRows::Signals),
        vectors: VectorUse::Embedding,
    }
}

/// The card of a recurrent classifier.
pub fn card(
    cell: &'static CellKind,
    s: Settings<'_>,
    data: &Data,
) -> Result<ModelCard, ParamError> {
    let reads = reads(s, data)?;
    let outside = outside(&reads, data);
    let spec = RecurrentSpec {
        layers: s.int("layers")?,
        bidirectional: s.flag("bidirectional")?,
        attention: s.int("attention")?,
        learned_state: s.flag("learned_state")?,
        dropout: s.float("dropout")?,
        hidden: s.int("hidden")?,
        // Only LSTM layers have a forget gate; the others ignore it, and their cards have always said 1.
        forget_bias: s.maybe_float("forget_bias").unwrap_or(1.0),
        ..RecurrentSpec::new(cell, reads, s.int("units")?, data.classes)
    };
    network_card(&spec, data, outside)
}

/// The specification in a card.
pub fn network(
    cell: &'static CellKind,
    card: &ModelCard,
) -> Option<Result<Box<dyn NetworkSpec>, String>> {
    let spec = card.spec::<RecurrentSpec>();
    Some(spec.map(|spec| Box::new(RecurrentSpec { cell, ..spec }) as Box<dyn NetworkSpec>))
}

/// Whether attention pools its states.
pub fn attends(s: Settings<'_>) -> bool {
    s.maybe_int("attention").unwrap_or(0) != 0
}

/// Whether it can be read one step after the other.
pub fn steps(s: Settings<'_>) -> bool {
    let whole = s.flag("bidirectional").unwrap_or(false);
    !whole && !attends(s)
}

/// Whether it reads connected vectors that are not among its weights.
pub fn keeps_vectors_outside(s: Settings<'_>, signals: bool) -> bool {
    frozen(s) && !signals
}
