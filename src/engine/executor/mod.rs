//! Where jobs run. The scheduler hands out jobs and takes reports; it does not know on which threads or machines
//! they are executed.

mod local;

use std::time::Duration;

use super::execute::ExecutionReport;
use super::inputs::TablesAtHand;
use super::job::Job;

pub use local::{FindKind, LocalExecutor, StagePools};

/// Executes jobs, some at once.
pub trait Executor {
    /// How many jobs it takes at once.
    fn slots(&self) -> usize;

    /// Starts a job under a number, which its report will have. `at_hand` are inputs that this process holds.
    fn start(&mut self, number: usize, job: Job, at_hand: TablesAtHand);

    /// The next report, if one arrives in time.
    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)>;
}
