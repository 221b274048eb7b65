//! The recurrent classifier with RNN layers.

use super::recurrent::{CellKind, cell_kind};
use crate::layers::Rnn;

/// Vanilla recurrent layer.
pub static RNN: CellKind = cell_kind::<Rnn>("rnn");
