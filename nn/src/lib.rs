//! Models with exact gradients: arrays in, arrays out.
//!
//! No tables, no files, no clock, no global randomness. Numbers flow through a [`models::Model`] on an
//! [`autodiff::Tape`] (its record), towards an [`objectives::Objective`]; [`training::fit`] trains, a
//! [`victim::Victim`] is attacked. Same inputs, same bits: on any number of threads, in any batch.
//!
//! Modules are layers: [`numeric`], [`autodiff`], [`layers`], [`models`], then [`training`], [`victim`] and
//! [`stepping`], and [`coverage`] of what victims show; [`linear`] and [`ngrams`] beside them.

#![deny(missing_docs, unsafe_code)]

pub mod autodiff;
pub mod batch;
pub mod coverage;
pub mod error;
pub mod layers;
pub mod linear;
pub mod models;
pub mod ngrams;
pub mod numeric;
pub mod objectives;
pub mod stepping;
pub mod training;
pub mod victim;
pub use error::{Error, Result};
pub use numeric::{Real, Stream};
