//! The parameters of a recurrent classifier, with the kind of its layers. Knows no kind by name.

use crate::autodiff::Layout;
use crate::error::{Error, Result};
use crate::models::network::{Network, NetworkSpec};
use crate::models::reader::Reads;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// A kind of recurrent layer as a model's parameter: its name, and how a classifier of such layers is built.
pub struct CellKind {
    /// As it is written in specifications.
    pub name: &'static str,
    pub(super) build: fn(&mut Layout, &RecurrentSpec) -> Result<Arc<dyn Network>>,
}

impl PartialEq for CellKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for CellKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Parameters of a recurrent classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentSpec {
    /// Which layer. The caller, which has a list of them, reads it back.
    #[serde(serialize_with = "cell_name", skip_deserializing, default = "unknown")]
    pub cell: &'static CellKind,
    /// What it reads.
    pub reads: Reads,
    /// Hidden units of each layer and direction.
    pub units: usize,
    /// Classes.
    pub classes: usize,
    /// Layers on top of each other.
    #[serde(default = "one")]
    pub layers: usize,
    /// Whether each layer also reads backward.
    #[serde(default)]
    pub bidirectional: bool,
    /// Size of the scores' hidden layer for attention pooling; 0 takes the last state.
    #[serde(default)]
    pub attention: usize,
    /// Whether initial states are learned.
    #[serde(default)]
    pub learned_state: bool,
    /// Dropout of the pooled vector, and between layers.
    #[serde(default)]
    pub dropout: f64,
    /// Units of a ReLU layer before the logits; 0 for none.
    #[serde(default)]
    pub hidden: usize,
    /// What the forget gate's bias starts at.
    #[serde(default)]
    pub forget_bias: f64,
    /// Whether padding is read like text (the tutorial behind P0 does so).
    #[serde(default)]
    pub run_through_padding: bool,
}

impl RecurrentSpec {
    /// One layer, no dropout, the last state to the logits.
    pub fn new(cell: &'static CellKind, reads: Reads, units: usize, classes: usize) -> Self {
        RecurrentSpec {
            cell,
            reads,
            units,
            classes,
            layers: 1,
            bidirectional: false,
            attention: 0,
            learned_state: false,
            dropout: 0.0,
            hidden: 0,
            forget_bias: 0.0,
            run_through_padding: false,
        }
    }
}

fn one() -> usize {
    1
}

fn cell_name<S: Serializer>(cell: &&'static CellKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(cell.name)
}

/// What stands in for the kind of layer while the other parameters are read.
fn unknown() -> &'static CellKind {
    static UNKNOWN: CellKind = CellKind {
        name: "",
        build: |_, _| {
            Err(Error::Missing {
                what: "recurrent layer type in its parameters",
            })
        },
    };
    &UNKNOWN
}

impl NetworkSpec for RecurrentSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        (self.cell.build)(layout, self)
    }
}
