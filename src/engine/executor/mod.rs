//! Where jobs run. The scheduler hands out jobs and takes reports; it does not know on which threads or machines
//! they are executed.

mod local;
pub mod queue;
pub mod remote;
pub mod room;

use std::time::Duration;

use super::execute::ExecutionReport;
use super::inputs::TablesAtHand;
use super::job::Job;
use crate::config::Resources;

pub use local::{FindKind, LocalExecutor, StagePools};

/// Executes jobs, some at once.
pub trait Executor {
    /// How many places there are, and how much memory.
    fn room(&self) -> (usize, u64);

    /// What a job with these resources takes of that.
    fn takes(&self, resources: Resources) -> Resources;

    /// Starts a job under a number, which its report will have. `at_hand` are inputs that this process holds.
    fn start(&mut self, number: usize, job: Job, resources: Resources, at_hand: TablesAtHand);

    /// The next report, if one arrives in time.
    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)>;
}
