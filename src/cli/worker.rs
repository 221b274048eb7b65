//! `ablate worker`: executes one task of a run that is driven from another machine.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::stop::{checkpoint_requests, stop_flag};
use crate::diagnostic::Diagnostic;
use crate::engine::worker::{self, Signals};

/// What `worker` takes.
#[derive(Args)]
pub struct Arguments {
    /// The folder of the task, in the folder `jobs` of a store
    #[arg(required_unless_present = "array")]
    task: Option<PathBuf>,
    /// A list of tasks, of which the one with the number SLURM_ARRAY_TASK_ID is executed
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    array: Option<PathBuf>,
}

/// Executes a task. What came of it is in its folder; the exit code says whether it could be said.
pub fn worker(arguments: &Arguments) -> Result<(), Exit> {
    let task = match (&arguments.task, &arguments.array) {
        (Some(task), _) => task.clone(),
        (None, Some(list)) => listed(list)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let signals = Signals {
        stop: stop_flag(),
        checkpoints: checkpoint_requests(),
    };
    worker::work(&task, stages::find, &signals).map_err(|error| {
        let name = task.display();
        Exit::Failed(Diagnostic::new(format!("cannot work at `{name}`: {error}")))
    })
}

/// The task of this member of an array.
fn listed(list: &Path) -> Result<PathBuf, Exit> {
    let number = std::env::var("SLURM_ARRAY_TASK_ID").ok();
    let number: Option<usize> = number.and_then(|text| text.parse().ok());
    let bytes = std::fs::read(list).ok();
    let tasks: Option<Vec<PathBuf>> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let task = number
        .zip(tasks)
        .and_then(|(n, tasks)| tasks.get(n).cloned());
    task.ok_or_else(|| {
        let name = list.display();
        let what = format!("`{name}` has no task of the number in SLURM_ARRAY_TASK_ID");
        Exit::Failed(Diagnostic::new(what))
    })
}
