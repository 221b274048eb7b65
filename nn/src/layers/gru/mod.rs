//! Gated recurrent unit.

mod backward;
pub(in crate::layers) mod kernels;
mod layer;
mod step;

pub use layer::Gru;
