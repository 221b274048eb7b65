//! What is differentiated: a number for each item, and its gradient on the tape.

mod loss;
mod objective;
mod range;
mod ranks;
mod states;

pub use objective::Objective;
pub use states::{StateKind, StateTerm};
