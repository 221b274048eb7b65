//! Tests that walk the lists of kinds, attacks and models, and what tests of kinds share.

mod documented;
mod effects;
mod readmes;
pub mod trial;
