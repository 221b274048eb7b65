//! The content-addressed store: tables as Parquet objects named by their BLAKE3 digest,
//! the action cache and the provenance of every execution in SQLite, leases, gc and fsck.
//! Knows nothing of stages, pipelines or the terminal.
//!
//! In reading order: `tables` says what an object's bytes are, `files` and `database` what lies in the folder,
//! `records` what is remembered, `store` opens it. On it stand `objects`, `run_log` (seals), `recording`
//! (writes), `history`, `lineage`, `lookup` and `nearest` (read back), `gc` and `fsck`.

mod acceptance;
mod database;
mod digest;
mod error;
mod files;
mod fsck;
mod gc;
mod history;
mod installed;
mod key;
mod lease;
mod lineage;
mod lookup;
mod mutex;
mod nearest;
mod objects;
mod place;
mod provenance;
mod recording;
mod records;
mod run_log;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod value;

pub use acceptance::Acceptance;
pub use digest::Digest;
pub use error::Error;
pub use files::Scratch;
pub use fsck::{FsckReport, Inspected, LostOutput, Problem, Repaired};
pub use gc::{GcReport, empty_damaged, gc};
pub use installed::{Installed, InstalledChange, Package};
pub use key::{CodeFiles, StageKey, code_digest};
pub use lease::Lease;
pub use lineage::{Answer, Lineage, Link, Outputs};
pub use lookup::Snapshot;
pub use provenance::{PROVENANCE, ProvenanceColumn, ProvenanceTable};
pub use records::{
    Environment, Execution, Facts, Finished, Found, InputUsed, MadeBy, NewRun, Output, RawFile,
    Run, RunId, RunOutcome, Staged, Status, Use, UseRecord, Work,
};
pub use run_log::LogReport;
pub use store::Store;
pub use tables::{
    METADATA_PREFIX, canonical, decode, decode_foreign, encode, read_foreign, schema_text,
};
pub use value::{Params, Value};
