//! Reads the pipeline file: as written ([`tree`]), with overlays, then as checked.
//! What leaves here has known kinds, known keys and references that resolve by name;
//! it knows nothing of instances, keys or the store.

mod ablations;
mod axes;
mod axis;
mod axis_overlay;
mod choices;
mod effective;
pub mod entries;
mod exclusion;
mod executor;
mod input;
mod like;
mod overlay;
mod params;
mod pipeline;
mod points;
mod read;
mod references;
mod renamed;
mod resources;
mod stage;
#[cfg(test)]
mod tests;
pub mod tree;

pub use ablations::ablations;
pub use axis::{Axis, Dotted};
pub use effective::Effective;
pub use exclusion::Exclusion;
pub use executor::{CommandQueueSettings, Executors, QueuePatience, SlurmSettings};
pub use input::{Input, Reference, reference};
pub use params::{Bindings, check_params, fill};
pub use pipeline::{Data, Pipeline, PipelineRequest, UNNAMED};
pub use points::FIXED;
pub use read::read;
pub use resources::Resources;
pub use stage::{Best, Over, Read, Select, StageDecl};
