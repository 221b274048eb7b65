//! What the results might have been, had other items been drawn and other seeds used: the stages between an attack's
//! examples and some tables, recomputed in memory. Nothing is stored.
//!
//! A draw resamples items, once for all tables that hold them, and recomputes what `sql` and `evaluate` make of them
//! ([`items`]); it adds to the rows of `results` a term for the seeds ([`seeds`]). [`outline`] finds what must be
//! recomputed, [`unread`] leaves out what nobody reads, [`prepare`] loads it, [`executions`] knows which seeds are executions of their own.

mod columns;
mod executions;
mod graph;
mod items;
mod outline;
mod prepare;
mod recompute;
mod seeds;
mod unread;

pub use executions::ExecutedSeeds;
pub use outline::{Outline, outline};
pub use prepare::{Prepared, prepare};
pub use recompute::Tables;
