//! The content-addressed store: tables as Parquet objects named by their BLAKE3 digest,
//! the action cache and the provenance of every execution in SQLite, leases, gc and fsck.
//! Knows nothing of stages, pipelines or the terminal.

mod digest;
mod key;
mod value;

pub use digest::Digest;
pub use key::StageKey;
pub use value::{Params, Value};
