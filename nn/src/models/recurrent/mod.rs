//! Recurrent classifiers of any kind of layer.

mod carried;
mod classifier;
mod head;
mod spec;
mod stepper;

pub(super) use carried::carried;
pub use classifier::Recurrent;
pub(super) use classifier::cell_kind;
pub use spec::{CellKind, RecurrentSpec};
