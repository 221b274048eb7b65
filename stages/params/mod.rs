//! Parameters: defaults per choice, ranges, and reading them by name.

pub mod complete;
pub mod settings;
