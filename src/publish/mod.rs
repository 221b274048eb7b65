//! Results for readers: claims and their verdicts, reports, manuscripts, and runs for other tools.

pub mod certificate;
pub mod claims;
pub mod exchange;
pub mod manuscript;
pub mod multiverse;
pub mod report;
