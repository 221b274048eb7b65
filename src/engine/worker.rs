//! Executes one task that a driver on another machine has written, and says what came of it. Reads and writes objects;
//! never opens the database. Knows nothing of queues.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use stages::{DataHome, Failure};
use store::{Environment, Output, Staged, Store};

use super::checkpoint::CheckpointTimes;
use super::execute::{ExecutionContext, ExecutionError, ExecutionReport, execute};
use super::executor::FindKind;
use super::handover::{self, Done, Handover, Outcome, QueueTask, Started};
use super::inputs::TablesAtHand;
use super::memory_kills::{job_ran_out, memory_kills};
use crate::environment;
use crate::huge_pages;

/// What a worker is told by signals.
pub struct Signals {
    /// Stop.
    pub stop: Arc<AtomicBool>,
    /// Save checkpoints.
    pub checkpoints: Arc<AtomicU64>,
}

/// Executes the task in a folder. An error is about the folder: there is nobody else to tell.
pub fn work(folder: &Path, kinds: FindKind, signals: &Signals) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let (jobs, root) = above(&folder)?;
    handover::check_owner(jobs)?;
    let handover = Handover::at(folder.clone());
    let task = handover.task()?;
    if handover.is_abandoned() {
        return Err(io::Error::other("nobody waits for this task any more"));
    }
    let here = environment::capture_machine(task.resources.cpus);
    handover.note_started(&Started {
        node: std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| here.host.clone()),
        process: std::process::id(),
        at: environment::unix_micros(SystemTime::now()),
    })?;
    let killed = memory_kills();
    let mut report = match task.program == environment::program() {
        false => {
            let why = "the worker is another version of ablate than the driver of the run";
            let help = "let all machines have the same program, and run again";
            ExecutionReport::not_started(Failure::new(why).help(help))
        }
        true => run(&task, root, &folder, kinds, signals),
    };
    if was_ended(&report, signals) {
        report.outcome = Err(ExecutionError::Failed(Failure::stopped()));
    }
    if handover.is_abandoned() {
        return Err(io::Error::other("nobody waits for this task any more"));
    }
    let short = is_failure(&report) && job_ran_out(killed);
    let mut done = done(&task, report, here);
    if short {
        done.outcome = Outcome::OutOfMemory;
    }
    handover.note_done(&done)
}

fn is_failure(report: &ExecutionReport) -> bool {
    matches!(&report.outcome, Err(ExecutionError::Failed(failure)) if !failure.stopped)
}

/// Whether a failure is the queue's doing: at a time limit it ends the stage's programs together with this one, and
/// what is heard first is chance.
fn was_ended(report: &ExecutionReport, signals: &Signals) -> bool {
    if !matches!(report.outcome, Err(ExecutionError::Failed(_))) {
        return false;
    }
    std::thread::sleep(Duration::from_millis(300));
    signals.stop.load(Ordering::Relaxed)
}

/// The folder of all tasks, and the store's.
fn above(folder: &Path) -> io::Result<(&Path, &Path)> {
    let jobs = folder.parent();
    let both = jobs.and_then(|jobs| Some((jobs, jobs.parent()?)));
    both.ok_or_else(|| io::Error::other("a task lies in the folder `jobs` of a store"))
}

fn run(
    task: &QueueTask,
    root: &Path,
    folder: &Path,
    kinds: FindKind,
    signals: &Signals,
) -> ExecutionReport {
    let refused = |why: String| ExecutionReport::not_started(Failure::new(why));
    let Some(kind) = kinds(&task.job.kind) else {
        let kind = &task.job.kind;
        return refused(format!("this version of ablate has no kind `{kind}`"));
    };
    let store = match Store::objects_only(root, &folder.join("tmp")) {
        Ok(store) => store,
        Err(error) => return refused(error.to_string()),
    };
    huge_pages::allow();
    if !task.settings.sandbox {
        stages::programs::disable_sandbox();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(task.resources.cpus)
        .build()
        .expect("a thread pool can be made");
    let context = ExecutionContext {
        inputs: &store,
        outputs: &store,
        data: &DataHome {
            cache: task.settings.cache.clone(),
            mirror: task.settings.mirror.clone(),
            offline: task.settings.offline,
        },
        stop: &signals.stop,
        checkpoints: Some(&CheckpointTimes {
            every: Duration::from_secs(task.settings.checkpoint_every),
            requests: signals.checkpoints.clone(),
        }),
    };
    let none = TablesAtHand::new();
    let mut report = pool.install(|| execute(kind, &task.job, &none, context, &|_, _| ()));
    // Objects are in their places before anybody is told of them.
    if let Ok(outputs) = &report.outcome
        && let Err(error) = store.publish(outputs.iter().map(|(staged, _)| staged.digest))
    {
        report.outcome = Err(ExecutionError::Failed(Failure::new(error.to_string())));
    }
    report
}

fn done(task: &QueueTask, report: ExecutionReport, here: Environment) -> Done {
    let named = |(name, staged): (&String, Staged)| Output {
        name: name.clone(),
        digest: staged.digest,
        rows: staged.rows,
        bytes: staged.bytes,
        schema: staged.schema,
    };
    let outcome = match report.outcome {
        Ok(outputs) => {
            let staged = outputs.into_iter().map(|(staged, _)| staged);
            Outcome::Made(task.job.outputs.iter().zip(staged).map(named).collect())
        }
        Err(ExecutionError::LostInput(digest, _)) => Outcome::LostInput(digest),
        Err(ExecutionError::LeftAlone(_)) => Outcome::Stopped,
        Err(ExecutionError::Failed(failure)) if failure.stopped => Outcome::Stopped,
        Err(ExecutionError::Failed(failure)) => Outcome::Failed {
            message: failure.message,
            help: failure.help,
            param: failure.param.map(str::to_owned),
        },
    };
    Done {
        nonce: task.nonce.clone(),
        key: task.job.key,
        outcome,
        execution: report.record,
        environment: here,
    }
}
