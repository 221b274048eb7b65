//! Models with exact gradients: arrays in, arrays out.
//!
//! No tables, no files, no clock, no global randomness. Numbers flow through
//! [`model::Model`] (a network by name) on a [`tape::Tape`] (its record), towards an
//! [`objective::Objective`]; [`fit::fit`] trains, a [`victim::Victim`] is attacked.
//! Same inputs, same bits: on any number of threads, in any batch.

#![deny(missing_docs, unsafe_code)]

pub mod batch;
pub mod checkpoint;
pub mod dictionary;
mod endings;
pub mod error;
pub mod evaluate;
pub mod fit;
#[allow(unsafe_code, reason = "the micro-kernel reads without bounds checks")]
pub mod gemm;
pub mod grads;
pub mod growth;
pub mod layers;
pub mod model;
pub mod models;
pub mod objective;
pub mod online;
pub mod optimiser;
pub mod order;
pub mod owner;
mod packs;
pub mod params;
mod random;
mod real;
pub mod safetensors;
pub mod schedule;
#[allow(unsafe_code, reason = "vector instructions, after a check at run time")]
pub mod simd;
pub mod step;
pub mod stream;
mod swaps;
pub mod tape;
pub mod trainer;
mod update;
pub mod victim;

pub use endings::Ending;
pub use error::{Error, Result};
pub use random::Stream;
pub use real::Real;
pub use swaps::Remembered;
