//! Work that may run out of memory, done in a separate process.
//!
//! A query or a foreign file may need any amount of memory, and a process that
//! cannot have it is ended on the spot: the whole run, with all its stages. So such work is done
//! by workers, copies of this program that read requests from a pipe. A worker that exceeds the
//! [budget](Budget), is killed or crashes is one failed stage. Workers are kept for the next
//! request. Knows nothing of what is asked; [`serve`] is given that.

mod budget;
mod pool;
mod request;
mod wire;
mod worker;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use arrow::record_batch::RecordBatch;

pub use budget::{Budget, in_words};
pub use request::{ARGUMENT, Request};
pub use worker::serve;

use crate::Failure;

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
