//! What needs what: every stage multiplied by its axes, wired to what it reads.
//! A plan holds no keys: those need the inputs' digests, which exist only as stages finish.

mod expand;
mod files;
mod foresee;
mod grid;
mod instance;
mod order;
mod reach;
mod stage_axes;
#[cfg(test)]
mod tests;
mod variant;
mod wiring;

use crate::config::Pipeline;
use crate::diagnostic::Diagnostic;

#[cfg(test)]
pub use files::DeclaredFile;
pub use files::{Files, runs_on};
pub use instance::{Feed, Plan, Pointer, Source, Wire};
pub use reach::{ends, reach};

/// Multiplies the stages by their axes and connects them.
pub fn build(pipeline: &Pipeline) -> Result<Plan<'_>, Vec<Diagnostic>> {
    let order = order::topological(&pipeline.stages)?;
    expand::expand(pipeline, &order)
}
