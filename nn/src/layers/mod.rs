//! Layers: each file has one, headed by its formula and shapes, with its gradient derived by hand.
//!
//! A layer holds spans and sizes, no numbers. `forward` writes its output on the tape and
//! records the backward half. Sequences are (time, batch, dim) with a length for each item;
//! what lies beyond an item's length never reaches its result.

mod activation;
mod attention;
mod conv;
mod conv_max;
mod decoder;
mod dense;
mod dropout;
mod embedding;
mod gru;
mod gru_cell;
mod highway;
mod join;
mod learned_state;
mod lstm;
mod lstm_cell;
mod norm;
mod one_step;
mod pool;
mod recurrent;
mod rnn;
mod scores;
mod transformer;

pub use activation::{Activation, activate};
pub use attention::{MultiHead, Sight, attend};
pub use conv::{ConvMax, Windows};
pub use decoder::{Decoded, Decoder, Start};
pub use dense::Dense;
pub use dropout::dropout;
pub use embedding::Embedding;
pub use gru::Gru;
pub use highway::Highway;
pub use join::{concat, sum};
pub use learned_state::LearnedState;
pub use lstm::Lstm;
pub(crate) use lstm::add;
pub use norm::LayerNorm;
pub(crate) use one_step::{Map, OneStep};
pub use pool::{AttentionPool, mean};
pub use recurrent::{Cell, Direction, Gate, States, last};
pub use rnn::Rnn;
pub use transformer::{Block, BlockSize, positions};

use std::sync::Arc;

/// The length of every item of a batch.
pub type Lens = Arc<[usize]>;
