//! The content-addressed store: tables as Parquet objects named by their BLAKE3 digest,
//! the action cache and the provenance of every execution in SQLite, leases, gc and fsck.
//! Knows nothing of stages, pipelines or the terminal.
//!
//! In reading order: `canonical` and `table` say what an object's bytes are, `objects` where they
//! lie, `lease` who may make them, `record` and `provenance` what is remembered of it, `lookup`,
//! `history`, `lineage` and `nearest` read that back, `gc` and `fsck` keep the house.

mod accept;
mod canonical;
mod chain;
mod columns;
mod content;
mod digest;
mod disk;
mod error;
mod fixed;
mod foreign;
mod fsck;
mod gc;
mod history;
mod key;
mod lease;
mod lineage;
mod listing;
mod lookup;
mod migrations;
mod nearest;
mod objects;
mod open;
mod provenance;
mod record;
mod scratch;
mod spool;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod watched;

pub use accept::Acceptance;
pub use canonical::{METADATA_PREFIX, canonical, schema_text};
pub use chain::ChainReport;
pub use digest::Digest;
pub use error::Error;
pub use foreign::{decode_foreign, read_foreign};
pub use fsck::{FsckReport, Inspected, LostOutput, Problem, Repaired};
pub use gc::{GcReport, empty_damaged, gc};
pub use history::{CodeFiles, Execution, MadeBy, Run, UseRecord};
pub use key::{StageKey, code_digest};
pub use lease::Lease;
pub use lineage::{Answer, Lineage, Link, Outputs};
pub use lookup::Snapshot;
pub use objects::Staged;
pub use open::Store;
pub use record::{
    Environment, Facts, Finished, Found, InputUsed, NewRun, Output, RawFile, RunId, RunOutcome,
    Status, Use, Work,
};
pub use scratch::Scratch;
pub use table::{decode, encode};
pub use value::{Params, Value};
