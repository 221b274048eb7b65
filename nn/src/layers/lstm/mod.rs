//! Long short-term memory.

mod backward;
pub(in crate::layers) mod kernels;
mod layer;
mod step;
mod weights;

pub use layer::Lstm;
pub use weights::LstmWeights;
