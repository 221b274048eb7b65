//! Runs what is to be run: [`scheduler`] decides when, [`job`] is one stage as a value, [`executor`] decides where it
//! runs, [`execute`] runs it, [`progress`] reports it. Knows no kind of stage by name.

pub mod checkpoint;
mod committer;
pub mod execute;
pub mod executor;
pub mod handover;
pub mod inputs;
pub mod job;
mod memory_kills;
mod observer;
pub mod panics;
pub mod progress;
pub mod scheduler;
pub mod worker;
