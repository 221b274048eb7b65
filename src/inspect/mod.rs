//! Looks at what is stored: how things stand, why, what differs, where it came from, and whether it comes out again.

pub mod ablation;
pub mod audit;
pub mod challenge;
pub mod compare;
pub mod draws;
pub mod explain;
pub mod items;
pub mod kept;
pub mod lock;
pub mod queued;
pub mod status;
pub mod stored;
pub mod summaries;
pub mod verify;
