//! What a worker can be asked to do. Knows nothing of how it is started or answered.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The argument that makes this program a worker.
pub const ARGUMENT: &str = "__worker";

/// What a worker can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A query over tables.
    Query(String),
    /// The table in a Parquet file of another program.
    Parquet(PathBuf),
}

impl Request {
    /// What is done, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Request::Query(_) => "the query",
            Request::Parquet(_) => "reading the Parquet file",
        }
    }
}
