//! What a stage kind promises the engine, and what it is given. Knows no kind.

pub mod data_home;
pub mod description;
pub mod determinism;
pub mod expected;
pub mod failure;
pub mod follow;
pub mod nearest;
pub mod notice;
pub mod program;
pub mod replayed;
pub mod role;
pub mod stage;
pub mod task;
