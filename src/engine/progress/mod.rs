//! What people and programs see of a run. Reads events, decides nothing.

mod bars;
mod event;
mod json;
mod lines;
mod summary;

pub use bars::Bars;
pub use event::{Event, Reporter, Tally, Worked};
pub use json::Json;
pub use lines::{Lines, Quiet};
