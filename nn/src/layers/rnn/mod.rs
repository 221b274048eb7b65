//! The vanilla recurrent layer.

mod backward;
mod kernels;
mod layer;
mod step;

pub use layer::Rnn;
