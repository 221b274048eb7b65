//! Attacks on sequences while they arrive, for the command line.

pub use crate::kinds::attack::{AttackStream, StreamRun, has_target};

/// The input of an attack stage that has the attacked model.
pub const VICTIM: &str = "victim";
