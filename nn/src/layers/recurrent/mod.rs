//! What RNN, GRU and LSTM layers share. Knows none of them.

mod cell;
mod column_map;
mod columns;
mod learned_state;
mod one_step;
mod packed_map;
mod states;
mod step_bias;
mod step_map;
mod unrolled;
mod weights;

pub use cell::{HiddenStates, RecurrentCell};
pub use column_map::ColumnMap;
pub use columns::narrow;
pub use learned_state::LearnedState;
pub(in crate::layers) use one_step::repeat;
pub use one_step::{InputTangent, OneStep, StepEquations, StepMemory};
pub use packed_map::PackedMap;
pub use states::{Direction, Gate, States, last};
pub use step_bias::StepBias;
pub use step_map::StepMap;
pub(in crate::layers) use unrolled::StepRows;
pub use unrolled::{Reading, Unrolled};
pub use weights::GateWeights;
pub(in crate::layers) use weights::{RecurrentWeights, recurrent_product};
