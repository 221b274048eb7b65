//! Runs one stage: load its inputs, call it, store its outputs.
//! Knows nothing of the graph, of other stages, or of the terminal.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use arrow::record_batch::RecordBatch;
use stages::{DataHome, Failure, Place, SourceFile, Stage, Task, Usage, Watch, collect};
use store::{Digest, Params, RawFile, Staged, Store, Value, Work};

use crate::environment;
use crate::panics;
use crate::plan::{Files, Source};

/// A stage that is ready to run: all that it needs, and nothing of the graph.
pub struct Job {
    /// The kind.
    pub kind: &'static dyn Stage,
    /// Checked parameters.
    pub params: Arc<Params>,
    /// The seed, if the kind is seeded.
    pub seed: Option<u64>,
    /// Declared files.
    pub files: Arc<Files>,
    /// The pipeline's folder.
    pub folder: PathBuf,
    /// What each port receives.
    pub supplies: Vec<(String, Supply)>,
    /// The outputs that it must make.
    pub outputs: Arc<Vec<String>>,
}

/// What a port receives.
pub enum Supply {
    /// One table.
    One(Piece),
    /// Several tables as one.
    Collect {
        /// The columns that the axes become.
        axes: Vec<String>,
        /// The tables with their labels and axis values.
        parts: Vec<(String, Vec<Value>, Piece)>,
    },
}

/// A table, or where it is.
pub struct Piece {
    /// The output that it is.
    pub source: Source,
    /// Its digest.
    pub digest: Digest,
    /// The table, if this run has just made it.
    pub table: Option<RecordBatch>,
}

/// What happened.
pub struct Report {
    /// The outputs in order, or why there are none.
    pub outcome: Result<Vec<(Staged, RecordBatch)>, Trouble>,
    /// What it took.
    pub account: Account,
}

/// What an execution took, for the provenance.
pub struct Account {
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
}

/// Why a stage made nothing.
pub enum Trouble {
    /// The stage failed.
    Failed(Failure),
    /// An input is no longer in the store as it was: its producer must make it again.
    LostInput(Source, store::Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Failed(failure)
    }
}

/// Where tables are read from, and where they go. The same store but for `verify`.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// Holds the inputs.
    pub inputs: &'a Store,
    /// Takes the outputs.
    pub outputs: &'a Store,
}

impl<'a> From<&'a Store> for Stores<'a> {
    fn from(store: &'a Store) -> Stores<'a> {
        Stores {
            inputs: store,
            outputs: store,
        }
    }
}

/// Runs a job to its end. Never panics on behalf of the stage.
pub fn run(
    job: &Job,
    stores: Stores<'_>,
    data: &DataHome,
    stop: &AtomicBool,
    on_progress: &(dyn Fn(u64, u64) + Sync),
) -> Report {
    let started = SystemTime::now();
    let clock = Instant::now();
    let cpu_before = environment::thread_cpu();
    let watch = Observer {
        stop,
        on_progress,
        work: Mutex::default(),
        log: Mutex::default(),
        children: Mutex::default(),
        raw: Mutex::default(),
        sandbox: Mutex::default(),
    };
    let outcome = attempt(job, stores, data, &watch);
    let cpu = environment::thread_cpu().saturating_sub(cpu_before);
    let children = watch.children.into_inner().unwrap_or_default();
    let account = Account {
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
    };
    Report { outcome, account }
}

fn attempt(
    job: &Job,
    stores: Stores<'_>,
    data: &DataHome,
    watch: &Observer<'_>,
) -> Result<Vec<(Staged, RecordBatch)>, Trouble> {
    let mut inputs = BTreeMap::new();
    for (port, supply) in &job.supplies {
        inputs.insert(port.clone(), load(supply, stores.inputs)?);
    }
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
        data,
        place: &Place {
            pipeline: Some(job.folder.clone()),
            scratch: stores.outputs.scratch_path().ok(),
        },
        watch,
    };
    let guarded = AssertUnwindSafe(|| job.kind.run(&task));
    let mut made = panics::recorded(|| catch_unwind(guarded)).map_err(|message| {
        let kind = job.kind.describe().kind;
        Failure::new(format!("the kind `{kind}` panicked: {message}"))
            .help("this is a defect of the kind, not of the pipeline")
    })??;
    let mut outputs = Vec::with_capacity(job.outputs.len());
    for name in job.outputs.iter() {
        let table = made
            .remove(name)
            .ok_or_else(|| Failure::new(format!("the stage did not make its output `{name}`")))?;
        let wrong = |error| Failure::new(format!("output `{name}`: {error}"));
        // Readers get the form that the store would give them, or a cold run and a cached one
        // would differ.
        let table = store::canonical(&table).map_err(wrong)?;
        let staged = stores.outputs.put(&table).map_err(wrong)?;
        outputs.push((staged, table));
    }
    Ok(outputs)
}

/// The tables that a job reads, by port.
pub fn inputs(job: &Job, store: &Store) -> Result<BTreeMap<String, RecordBatch>, String> {
    let each = job.supplies.iter();
    let each = each.map(|(port, supply)| match load(supply, store) {
        Ok(table) => Ok((port.clone(), table)),
        Err(Trouble::Failed(failure)) => Err(failure.message),
        Err(Trouble::LostInput(_, error)) => Err(error.to_string()),
    });
    each.collect()
}

fn load(supply: &Supply, store: &Store) -> Result<RecordBatch, Trouble> {
    let table = |piece: &Piece| match &piece.table {
        Some(table) => Ok(table.clone()),
        None => store
            .read(&piece.digest)
            .map_err(|error| Trouble::LostInput(piece.source, error)),
    };
    match supply {
        Supply::One(piece) => table(piece),
        Supply::Collect { axes, parts } => {
            let rows: Vec<_> = parts
                .iter()
                .map(|(label, values, piece)| Ok((label.clone(), values.clone(), table(piece)?)))
                .collect::<Result<_, Trouble>>()?;
            let axes: Vec<&str> = axes.iter().map(String::as_str).collect();
            Ok(collect(&axes, &rows).map_err(|failure| failure.at("over"))?)
        }
    }
}

struct Observer<'a> {
    stop: &'a AtomicBool,
    on_progress: &'a (dyn Fn(u64, u64) + Sync),
    work: Mutex<Work>,
    log: Mutex<String>,
    children: Mutex<Usage>,
    raw: Mutex<Vec<RawFile>>,
    sandbox: Mutex<Option<String>>,
}

impl Watch for Observer<'_> {
    fn progress(&self, done: u64, total: u64) {
        (self.on_progress)(done, total);
    }

    fn work(&self, unit: &'static str, amount: u64) {
        if let Ok(mut work) = self.work.lock() {
            let sum = work.entry(unit.to_owned()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    fn log(&self, line: &str) {
        // A log is for people. One that never ends must not fill the database.
        const MOST: usize = 1 << 20;
        if let Ok(mut log) = self.log.lock()
            && log.len() < MOST
        {
            log.push_str(line);
            if !line.ends_with('\n') {
                log.push('\n');
            }
        }
    }

    fn raw(&self, file: RawFile) {
        if let Ok(mut raw) = self.raw.lock() {
            raw.push(file);
        }
    }

    fn sandbox(&self, how: &str) {
        if let Ok(mut sandbox) = self.sandbox.lock() {
            *sandbox = Some(how.to_owned());
        }
    }

    fn child(&self, usage: Usage) {
        if let Ok(mut sum) = self.children.lock() {
            sum.cpu += usage.cpu;
            sum.peak_memory = sum.peak_memory.max(usage.peak_memory);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages::{Code, Description, Inputs, Outputs, Port, Ports};

    /// A kind with a defect.
    struct Broken;

    static BROKEN: Description = Description {
        kind: "broken",
        summary: "Panics.",
        params: &[],
        seeded: false,
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

        fn code(&self, _: &Params) -> Code {
            unreachable!("nobody asks for its key")
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
            kind: &Broken,
            params: Arc::default(),
            seed: Some(seed),
            files: Arc::default(),
            folder: PathBuf::new(),
            supplies: Vec::new(),
            outputs: Arc::new(vec!["rows".to_owned()]),
        }
    }

    fn failure(seed: u64) -> (String, Account) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let home = DataHome::nowhere();
        let report = run(
            &job(seed),
            Stores::from(&store),
            &home,
            &AtomicBool::new(false),
            &|_, _| (),
        );
        match report.outcome {
            Err(Trouble::Failed(failure)) => (failure.message, report.account),
            _ => panic!("it did not fail"),
        }
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message_and_log() {
        panics::install();
        let (message, account) = failure(7);
        let start = "the kind `broken` panicked: seed 7 is one too many at src/run.rs:";
        assert!(message.starts_with(start), "{message}");
        assert_eq!(account.log, "before\n");
    }

    #[test]
    fn amounts_of_a_unit_add_up() {
        let work = failure(0).1.work;
        let expected = [("forward", 7), ("items", 3)].map(|(unit, n)| (unit.to_owned(), n));
        assert_eq!(work, Work::from(expected));
    }

    #[test]
    fn a_promised_output_that_is_not_made_is_a_failure() {
        assert_eq!(failure(0).0, "the stage did not make its output `rows`");
    }
}
