//! How an attack looks for a change that works.

pub mod greedy;
pub mod moves;
