//! Long short-term memory.

mod backward;
pub(in crate::layers) mod kernels;
mod layer;
mod step;

pub use layer::Lstm;
