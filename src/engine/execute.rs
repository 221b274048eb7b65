//! Executes one job: load its inputs, call its kind, store its outputs.
//! Knows nothing of the graph, of other stages, or of the terminal.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use stages::programs::installed;
use stages::{DataHome, Failure, Place, SourceFile, Stage, Task};
use store::{Digest, Environment, RawFile, Staged, Store, Work};

use super::checkpoint::{CheckpointFile, CheckpointTimes};
use super::inputs::{InputError, TablesAtHand, load};
use super::job::Job;
use super::observer::Observer;
use super::panics;
use crate::environment;
use crate::plan::runs_on;

/// What happened.
pub struct ExecutionReport {
    /// The outputs in order, with their tables if this process made them; or why there are none.
    pub outcome: Result<Vec<(Staged, Option<RecordBatch>)>, ExecutionError>,
    /// What it took.
    pub record: ExecutionRecord,
}

/// What an execution took, for the provenance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionRecord {
    /// When it started, in microseconds since 1970.
    pub started: i64,
    /// How long it took.
    pub wall: Duration,
    /// Processor time of the thread that ran it and of its child processes.
    pub cpu: Option<Duration>,
    /// Peak memory: of its child processes if it had any, else of this whole process.
    pub peak_memory: Option<u64>,
    /// What it counted.
    pub work: Work,
    /// What it logged.
    pub log: String,
    /// Files from outside that it read.
    pub raw: Vec<RawFile>,
    /// How its program was confined, if it had one.
    pub sandbox: Option<String>,
    /// How often it was resumed from a checkpoint.
    pub resumed: Option<u32>,
    /// The public key of who signed it, if a remote had it.
    #[serde(skip)]
    pub signer: Option<String>,
    /// Where it ran, if not where the run is driven from.
    #[serde(skip)]
    pub environment: Option<Arc<Environment>>,
}

/// Why a stage made nothing.
pub enum ExecutionError {
    /// The stage failed.
    Failed(Failure),
    /// An input is no longer in the store as it was: its producer must make it again.
    LostInput(Digest, Box<store::Error>),
    /// Nobody executes it: only a remote was asked, and this is why it was not taken from there.
    LeftAlone(String),
}

impl ExecutionReport {
    /// Of a job that could not even be started.
    pub fn not_started(failure: Failure) -> ExecutionReport {
        ExecutionReport {
            outcome: Err(ExecutionError::Failed(failure)),
            record: ExecutionRecord {
                started: environment::unix_micros(SystemTime::now()),
                ..ExecutionRecord::default()
            },
        }
    }
}

impl From<InputError> for ExecutionError {
    fn from(error: InputError) -> ExecutionError {
        match error {
            InputError::Lost(digest, error) => ExecutionError::LostInput(digest, error),
            InputError::Mismatch(failure) => ExecutionError::Failed(failure),
        }
    }
}

impl From<Failure> for ExecutionError {
    fn from(failure: Failure) -> ExecutionError {
        ExecutionError::Failed(failure)
    }
}

/// Where tables are read from and where they go, and what else an execution needs of this machine.
#[derive(Clone, Copy)]
pub struct ExecutionContext<'a> {
    /// Holds the inputs.
    pub inputs: &'a Store,
    /// Takes the outputs: the same store, except for `verify`.
    pub outputs: &'a Store,
    /// Where data sets are.
    pub data: &'a DataHome,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// When stages save how far they have come; never if there is none.
    pub checkpoints: Option<&'a CheckpointTimes>,
}

/// Runs a job to its end, on a pool that has no other work. Never panics on behalf of the stage.
pub fn execute(
    kind: &dyn Stage,
    job: &Job,
    at_hand: &TablesAtHand,
    context: ExecutionContext<'_>,
    on_progress: &(dyn Fn(u64, u64) + Sync),
) -> ExecutionReport {
    let started = SystemTime::now();
    let clock = Instant::now();
    let cpu_before = environment::pool_cpu();
    let checkpoint = context
        .checkpoints
        .map(|times| CheckpointFile::new(&context.outputs.checkpoints(), &job.key, times));
    let watch = Observer::new(context.stop, on_progress, checkpoint.as_ref());
    let outcome = attempt(kind, job, at_hand, context, &watch);
    let outcome = outcome.map(|outputs| {
        let outputs = outputs.into_iter();
        outputs
            .map(|(staged, table)| (staged, Some(table)))
            .collect()
    });
    // What failed by itself would fail again from there.
    let goes_on = matches!(&outcome, Err(ExecutionError::Failed(failure)) if failure.stopped)
        || matches!(&outcome, Err(ExecutionError::LostInput(..)));
    if let (Some(file), false) = (&checkpoint, goes_on) {
        file.remove();
    }
    let cpu = environment::pool_cpu().saturating_sub(cpu_before);
    let children = watch.children.into_inner().unwrap_or_default();
    let record = ExecutionRecord {
        started: environment::unix_micros(started),
        wall: clock.elapsed(),
        cpu: Some(cpu + children.cpu),
        peak_memory: match children.peak_memory {
            0 => environment::peak_memory(),
            bytes => Some(bytes),
        },
        work: watch.work.into_inner().unwrap_or_default(),
        log: watch.log.into_inner().unwrap_or_default(),
        raw: watch.raw.into_inner().unwrap_or_default(),
        sandbox: watch.sandbox.into_inner().unwrap_or_default(),
        resumed: watch.resumed.into_inner().unwrap_or_default(),
        signer: None,
        environment: None,
    };
    ExecutionReport { outcome, record }
}

fn attempt(
    kind: &dyn Stage,
    job: &Job,
    at_hand: &TablesAtHand,
    context: ExecutionContext<'_>,
    watch: &Observer<'_>,
) -> Result<Vec<(Staged, RecordBatch)>, ExecutionError> {
    let mut inputs = BTreeMap::new();
    for (port, input) in &job.inputs {
        inputs.insert(port.clone(), load(input, context.inputs, at_hand)?);
    }
    check_installed(kind, job)?;
    let files = job.files.iter();
    let task = Task {
        inputs,
        params: &job.params,
        seed: job.seed.unwrap_or(0),
        files: files
            .map(|(name, file)| {
                let file = SourceFile {
                    path: &file.path,
                    digest: file.digest,
                    executable: file.executable,
                };
                (name.clone(), file)
            })
            .collect(),
        data: context.data,
        place: &Place {
            pipeline: Some(job.folder.clone()),
            scratch: context.outputs.scratch_path().ok(),
            devices: match job.gpus {
                0 => Vec::new(),
                _ => stages::programs::graphics_devices(),
            },
        },
        watch,
    };
    let guarded = AssertUnwindSafe(|| kind.run(&task));
    let mut made = panics::recorded(|| catch_unwind(guarded)).map_err(|message| {
        let kind = kind.describe().kind;
        Failure::new(format!("the kind `{kind}` panicked: {message}"))
            .help("this is a bug in the kind, not in the pipeline")
    })??;
    check_installed(kind, job)?;
    let mut outputs = Vec::with_capacity(job.outputs.len());
    for name in job.outputs.iter() {
        let table = made.remove(name).ok_or_else(|| {
            Failure::new(format!("the stage did not produce its output `{name}`"))
        })?;
        let wrong = |error| Failure::new(format!("output `{name}`: {error}"));
        // Readers get the form that the store would give them, or a cold run and a cached one
        // would differ.
        let table = store::canonical(&table).map_err(wrong)?;
        let staged = context.outputs.put(&table).map_err(wrong)?;
        outputs.push((staged, table));
    }
    Ok(outputs)
}

/// What a program runs on must be what the key says: now, and after the program has run.
fn check_installed(kind: &dyn Stage, job: &Job) -> Result<(), Failure> {
    let Some(program) = kind.program(&job.params) else {
        return Ok(());
    };
    let now = runs_on(&program, &job.files);
    let now = now.map_err(|problem| Failure::new(problem.message).help(problem.help))?;
    installed::check(&job.installed, &now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Params;

    use stages::{Code, Description, Inputs, Outputs, Port, Ports};

    /// A kind with a defect.
    struct Broken;

    static BROKEN: Description = Description {
        kind: "broken",
        summary: "Panics.",
        params: &[],
        seeded: false,
        role: stages::Role::Other,
    };

    impl Stage for Broken {
        fn describe(&self) -> &'static Description {
            &BROKEN
        }

        fn ports(&self, _: &Params) -> Ports {
            Ports {
                inputs: Inputs::Named(Vec::new()),
                outputs: vec![Port::table("rows")],
            }
        }

        fn code(&self, _: &Params, _: &stages::ExpectedInputs<'_>) -> Code {
            unreachable!("its key is not requested")
        }

        fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
            task.watch.log("before");
            task.watch.work("items", 2);
            task.watch.work("forward", 7);
            task.watch.work("items", 1);
            match task.seed {
                0 => Ok(Outputs::new()),
                seed => panic!("seed {seed} is one too many"),
            }
        }
    }

    fn job(seed: u64) -> Job {
        Job {
            record: Job::RECORD.to_owned(),
            label: "stage".to_owned(),
            key: Digest::of(b"key"),
            kind: "broken".to_owned(),
            params: Params::new(),
            seed: Some(seed),
            files: Default::default(),
            installed: Default::default(),
            gpus: 0,
            folder: Default::default(),
            inputs: BTreeMap::new(),
            outputs: vec!["rows".to_owned()],
        }
    }

    fn failure(seed: u64) -> (String, ExecutionRecord) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let context = ExecutionContext {
            inputs: &store,
            outputs: &store,
            data: &DataHome::nowhere(),
            stop: &AtomicBool::new(false),
            checkpoints: None,
        };
        let none = TablesAtHand::new();
        let report = execute(&Broken, &job(seed), &none, context, &|_, _| ());
        match report.outcome {
            Err(ExecutionError::Failed(failure)) => (failure.message, report.record),
            _ => panic!("it did not fail"),
        }
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message_and_log() {
        panics::install();
        let (message, record) = failure(7);
        let start = "the kind `broken` panicked: seed 7 is one too many at src/engine/execute.rs:";
        assert!(message.starts_with(start), "{message}");
        assert_eq!(record.log, "before\n");
    }

    #[test]
    fn amounts_of_a_unit_add_up() {
        let work = failure(0).1.work;
        let expected = [("forward", 7), ("items", 3)].map(|(unit, n)| (unit.to_owned(), n));
        assert_eq!(work, Work::from(expected));
    }

    #[test]
    fn a_promised_output_that_is_not_made_is_a_failure() {
        assert_eq!(failure(0).0, "the stage did not produce its output `rows`");
    }
}
