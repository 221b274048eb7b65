//! What a stage found odd about what it was given: a line of its log that people are shown beside results. Decides no
//! result.

/// What such a line begins with.
pub const NOTICE: &str = "notice: ";
