//! The file of the database: its format, and whether it is still there.
//! Knows nothing of what its rows mean.

pub(crate) mod migrations;
pub(crate) mod watched;
