//! Tests that walk the lists of kinds, attacks and models, and what tests of kinds share.

mod columns;
mod documented;
mod effects;
mod readmes;
pub mod trial;
