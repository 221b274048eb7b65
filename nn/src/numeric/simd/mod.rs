//! Vectors of numbers.
//!
//! A [`Kernel`] is written once over [`Lanes`]; [`Real::launch`](super::Real::launch) runs it with the widest
//! vectors the processor has. This folder and `gemm` are the only places with `unsafe`.

mod kernel;
mod lanes;
mod launch;
mod math;
mod registers;

pub use kernel::Kernel;
pub use lanes::Lanes;
#[cfg(test)]
pub(crate) use launch::CHOSEN;
pub(crate) use launch::current;
pub use launch::{Isa, available, isa, launch_on};
pub use registers::Portable;

#[cfg(test)]
mod tests;
