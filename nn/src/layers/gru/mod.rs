//! The gated recurrent unit.

mod backward;
mod kernels;
mod layer;
mod step;
mod weights;

pub use layer::Gru;
pub use weights::GruWeights;
