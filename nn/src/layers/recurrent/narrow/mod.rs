//! Steps of narrow layers: a block of items at a time, from the sums to the state after without leaving registers.
//!
//! A row of a few units fills no vector, but one unit of many items does: numbers of a block are (numbers, items), and
//! vectors are of items. Of a single item they are of units. What is done to a number is the same as in rows, and in
//! the same order, sums included: no bit depends on it.

mod block;
mod dense;
mod map;
mod step;

use crate::numeric::gemm::BLOCK;

pub use block::{Block, Place};
pub use dense::NarrowDense;
pub use map::NarrowGates;
pub use step::{NarrowEquations, NarrowStep};

/// The most units of a narrow layer; no vector has fewer lanes.
const UNITS: usize = 8;

/// The most inputs: `numeric::gemm` cuts longer sums into blocks.
pub const TERMS: usize = BLOCK;

/// Whether the steps of a layer are computed so.
pub fn narrow(inputs: usize, units: usize) -> bool {
    units <= UNITS && inputs <= TERMS
}
