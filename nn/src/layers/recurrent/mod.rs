//! What RNN, GRU and LSTM layers share. Knows none of them.

mod cell;
mod learned_state;
pub mod narrow;
mod one_step;
mod packed_map;
mod row_step;
mod states;
mod unrolled;
mod weights;

pub use cell::{HiddenStates, RecurrentCell};
pub use learned_state::LearnedState;
pub use one_step::OneStep;
pub use packed_map::PackedMap;
pub(in crate::layers) use row_step::repeat;
pub use row_step::{InputTangent, StepEquations, StepMemory};
pub use states::{Direction, Gate, States, last};
pub(in crate::layers) use unrolled::StepRows;
pub use unrolled::{Reading, Unrolled};
pub use weights::GateWeights;
pub(in crate::layers) use weights::{RecurrentWeights, recurrent_product};
