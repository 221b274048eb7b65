//! Programs that stages start, for the engine: their environments and their sandbox.

pub use crate::kinds::command::{disable_sandbox, environment, kill_all};
