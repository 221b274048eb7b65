//! An LSTM decoder with additive attention.

mod backward;
mod by_item;
mod context;
mod layer;
mod scores;
mod weights;
pub use layer::{Decoded, Decoder};
pub use weights::{DecoderWeights, Start};
