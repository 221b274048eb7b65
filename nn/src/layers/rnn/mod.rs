//! The vanilla recurrent layer.

mod backward;
mod kernels;
mod layer;
mod step;
mod weights;

pub use layer::Rnn;
pub use weights::RnnWeights;
