//! The recurrent classifier with GRU layers.

use super::recurrent::{CellKind, cell_kind};
use crate::layers::Gru;

/// Gated recurrent unit.
pub static GRU: CellKind = cell_kind::<Gru>("gru");
