//! Long short-term memory.

mod backward;
mod hidden;
pub(in crate::layers) mod kernels;
mod layer;
mod narrow;
mod step;

pub use layer::Lstm;
