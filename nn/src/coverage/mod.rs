//! How much of a recurrent network's state space inputs have reached, and objectives that reach for more of it
//! (Guo et al., RNN-Test).
//!
//! An element is one number: (layer, step, unit). It is covered once some input has put it where a metric asks for;
//! [`Coverage`] adds up over inputs, in any order. [`Guidance`] chooses elements that an input can move. Knows
//! nothing of how inputs are changed.

mod guidance;
mod measure;
mod readings;

pub use guidance::{Guidance, Guided, Strategy};
pub use measure::{Coverage, CoverageSpec, CoverageValue};
pub use readings::{GateSource, StateMetric};
