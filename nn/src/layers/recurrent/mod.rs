//! What RNN, GRU and LSTM layers share. Knows none of them.

mod cell;
mod learned_state;
mod one_step;
mod packed_map;
mod states;
mod unrolled;
mod weights;

pub use cell::{HiddenStates, RecurrentCell};
pub use learned_state::LearnedState;
pub(in crate::layers) use one_step::repeat;
pub use one_step::{InputTangent, OneStep, StepEquations, StepMemory};
pub use packed_map::PackedMap;
pub use states::{Direction, Gate, States, last};
pub(in crate::layers) use unrolled::StepRows;
pub use unrolled::{Reading, Unrolled};
pub use weights::GateWeights;
pub(in crate::layers) use weights::{RecurrentWeights, recurrent_product};
