//! Work that may take more memory than there is, done in a process of its own.
//!
//! A query or a file of somebody else's may ask for any amount of memory, and a process that
//! cannot have it is ended on the spot: the whole run, with all its stages. So such work is done
//! by workers, copies of this program that read requests from a pipe. A worker that exceeds the
//! [budget](Budget), is killed or crashes is one failed stage. Workers are kept for the next
//! request. Knows nothing of what is asked; [`serve`] is given that.

mod budget;
mod pool;
mod wire;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};

pub use budget::{Budget, in_words};
pub use worker::serve;

use crate::Failure;

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
    fn what(&self) -> &'static str {
        match self {
            Request::Query(_) => "the query",
            Request::Parquet(_) => "reading the Parquet file",
        }
    }
}

static BUDGET: OnceLock<Option<Budget>> = OnceLock::new();

/// From now on work is done by workers, each with this much memory or a share of the machine's.
/// Until then, and in programs that never call it, it is done here.
pub fn enable(budget: Option<Budget>) {
    let _ = BUDGET.set(budget);
}

/// Has a worker do it. `None`: there are no workers, and it must be done here.
pub fn ask(
    request: &Request,
    tables: &BTreeMap<String, RecordBatch>,
    stopped: impl Fn() -> bool,
) -> Option<Result<RecordBatch, Failure>> {
    let budget = BUDGET.get()?.unwrap_or_default();
    pool::ask(request, tables, budget, stopped)
}
