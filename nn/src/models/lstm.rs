//! The recurrent classifier with LSTM layers.

use super::recurrent::{CellKind, cell_kind};
use crate::layers::Lstm;

/// Long short-term memory.
pub static LSTM: CellKind = cell_kind::<Lstm>("lstm");
