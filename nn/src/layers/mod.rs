//! Layers: each file has one, headed by its formula and shapes, with its gradient derived by hand.
//!
//! A layer holds spans and sizes, no numbers. `forward` writes its output on the tape and
//! records the backward half. Sequences are (time, batch, dim) with a length for each item;
//! what lies beyond an item's length never reaches its result.

mod activation;
mod alike;
mod attention;
mod conv_max;
mod decoder;
mod dense;
mod dropout;
mod embedding;
mod gru;
mod highway;
mod join;
mod lstm;
mod norm;
mod pool;
mod pool_scores;
mod recurrent;
mod rnn;
mod segments;
mod slices;
mod steps;
mod tile;
mod transformer;
pub use activation::{Activation, activate};
pub use attention::{MultiHead, Sight, attend};
pub use conv_max::{ConvMax, Windows};
pub use decoder::{Decoded, Decoder, DecoderWeights, Start};
pub use dense::Dense;
pub use dropout::dropout;
pub use embedding::Embedding;
pub use gru::{Gru, GruWeights};
pub use highway::Highway;
pub use join::{concat, sum};
pub use lstm::Lstm;
pub use norm::LayerNorm;
pub use pool::{AttentionPool, mean};
pub use recurrent::{
    Direction, Gate, GateWeights, HiddenStates, InputTangent, LearnedState, OneStep, PackedMap,
    Reading, RecurrentCell, States, StepEquations, StepMemory, Unrolled, last, narrow,
};
pub use rnn::Rnn;
pub use segments::{segment_ids, segments};
pub(crate) use slices::add;
pub use steps::Steps;
pub use transformer::{Block, BlockSize, positions};
