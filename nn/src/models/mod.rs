//! The models: each file has one, with its specification and its forward pass.

mod recurrent;

pub use recurrent::{CellKind, Recurrent, RecurrentSpec};
