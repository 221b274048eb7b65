//! Gradients by replaying layers backward: shapes, weights, the tape, and sums over parts of a batch.
//! Knows nothing of any particular layer.

mod grads;
mod layout;
mod linear_map;
mod packed_weights;
mod params;
mod shape;
mod shard;
mod tape;
mod values;
pub use grads::{Grads, Rows};
pub use layout::{Init, Layout, Span};
pub(crate) use linear_map::{map, map_back};
pub(crate) use packed_weights::PackedWeights;
pub use params::Params;
pub use shape::{Shape, Want};
pub use shard::{Shard, reduce};
pub(crate) use shard::{Touched, reduce_again};
pub use tape::{Op, Tape};
pub use values::{Values, Var};
