//! The vanilla recurrent layer.

mod backward;
mod kernels;
mod layer;
mod narrow;
mod step;

pub use layer::Rnn;
