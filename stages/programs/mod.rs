//! Programs that stages start: each in its own empty folder, with a clean environment and nothing but what its stage
//! declares. [`sandbox`] lays that out, [`confine`] keeps it to that, [`child`] runs it to its end, [`serving`] asks it
//! again and again, [`log`] keeps what it printed, [`advice`] says what to do when it failed. [`environment`] and [`installed`] say what it runs on, for the key.
//! Knows no kind by name.

pub(crate) mod advice;
mod cgroup;
pub(crate) mod check;
pub(crate) mod child;
pub(crate) mod confine;
mod enter;
pub mod environment;
pub mod installed;
mod lock;
pub(crate) mod log;
pub(crate) mod params;
pub(crate) mod program;
pub(crate) mod sandbox;
mod search;
pub mod secrets;
pub(crate) mod serving;
mod stray;
mod system;

pub use cgroup::{UsedUp, used_up};
pub use child::kill_all;
pub use confine::disable_sandbox;
pub use serving::stop_asking;
pub use system::graphics_devices;
