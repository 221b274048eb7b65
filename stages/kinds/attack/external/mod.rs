//! Attacks in programs of the user: asking them, and judging what they give back.

pub mod distance;
pub mod judge;
pub mod session;
pub mod wire;
