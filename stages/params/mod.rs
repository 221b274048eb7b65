//! Parameters: read once, with defaults per choice and names that are nearly right.

pub mod complete;
pub mod settings;
