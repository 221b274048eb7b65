//! Gated recurrent unit.

mod backward;
pub(in crate::layers) mod kernels;
mod layer;
mod narrow;
mod step;
mod weights;

pub use layer::Gru;
pub use weights::GruWeights;
