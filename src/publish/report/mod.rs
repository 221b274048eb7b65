//! One page for a run: summary, results, figures, adversarial examples, graph, provenance.
//!
//! ```text
//! store -> gather (the run as recorded) -> tables, figures, examples, graph, data -> page
//! ```
//!
//! Everything comes from the store; only claims, `figures.toml` and certificates are read beside the
//! pipeline file, by the caller. Text of data sets is hostile: templates escape it, and what the script
//! shows it shows as text.

pub mod ablations;
mod cell_source;
mod certificates;
mod character_edits;
pub mod compare;
mod curve;
mod data;
pub mod examples;
pub mod export;
pub mod figures;
mod graph;
mod lost;
mod outcome;
pub mod page;
mod plain;
mod reading;
mod run_page;
mod run_tables;
pub mod serve;
mod signals;
pub mod summary;
pub mod tables;
mod view;
mod worlds;

pub use lost::{LostResult, lost};
pub use run_page::{ReportRequest, make};
pub use run_tables::paper_tables;
pub use summary::ClaimRow;
