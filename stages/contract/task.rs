//! One execution of a stage: what it may read, and where it reports to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use store::{Digest, Params, RawFile};

use super::data_home::DataHome;

/// What a stage run makes: a table for each output port.
pub type Outputs = BTreeMap<String, RecordBatch>;

/// One execution of a stage: all that it may read.
pub struct Task<'a> {
    /// Input tables by port.
    pub inputs: BTreeMap<String, RecordBatch>,
    /// Checked parameters.
    pub params: &'a Params,
    /// The seed; 0 for kinds that are not seeded.
    pub seed: u64,
    /// Declared files by the name that the stage gives them. Their contents must have the digest.
    pub files: BTreeMap<String, SourceFile<'a>>,
    /// Where data sets lie on this machine. Decides no result: what is read has a known digest.
    pub data: &'a DataHome,
    /// Where it runs on this machine. Decides no result.
    pub place: &'a Place,
    /// Where to report to, and whether to stop.
    pub watch: &'a dyn Watch,
}

/// Where a stage runs on this machine.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The pipeline's folder: what is in it and not declared is closed to programs.
    pub pipeline: Option<PathBuf>,
    /// A path for a temporary folder that nobody else uses, and that is removed with its owner;
    /// without one, the system's folder for temporary files is used.
    pub scratch: Option<PathBuf>,
    /// Devices that programs may use beside those that any program may: graphics processors.
    pub devices: Vec<PathBuf>,
}

/// A declared file: where it is now, and what its contents were when the key was made.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'a> {
    /// Where to read it.
    pub path: &'a Path,
    /// The digest in the key. Contents that differ are a [`Failure`], never a result.
    pub digest: Digest,
    /// Whether it may be run as a program, as the key says.
    pub executable: bool,
}

/// The eyes on a running stage.
pub trait Watch: Sync {
    /// `done` of `total` units of work are finished.
    fn progress(&self, done: u64, total: u64);

    /// So much more of a unit of work was done: `items` attacked, `forward` or `backward`
    /// queries of a model. Amounts of a unit add up and become rates in the provenance; never
    /// part of a result.
    fn work(&self, unit: &'static str, amount: u64);

    /// A line for the execution's log in the provenance. Never part of a result.
    fn log(&self, line: &str);

    /// A file from outside was read, and its bytes had this checksum. For the provenance.
    fn raw(&self, file: RawFile) {
        let _ = file;
    }

    /// How a child process was confined. For the provenance.
    fn sandbox(&self, how: &str) {
        let _ = how;
    }

    /// What an earlier execution of the same key saved before it was stopped or killed: go on from there. Whoever
    /// does must end with the same bytes as an undisturbed execution.
    fn checkpoint(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether it is time to save a checkpoint.
    fn checkpoint_due(&self) -> bool {
        false
    }

    /// Saves how far the stage has come, in place of what was saved before.
    fn save_checkpoint(&self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// The stage has been resumed from a checkpoint, so often by now. For the provenance.
    fn resumed(&self, times: u32) {
        let _ = times;
    }

    /// What a child process used, to be added to the execution's account.
    fn child(&self, usage: Usage);

    /// True once the user has asked to stop: return [`Failure::stopped`] soon.
    fn stopped(&self) -> bool;
}

/// Resources used by a child process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Largest resident set, in bytes.
    pub peak_memory: u64,
}

/// A watch for work that saves no checkpoints: a stage that does several things in a row saves the long one only, and
/// must not have its checkpoint replaced by another's.
pub struct WithoutCheckpoints<'a>(pub &'a dyn Watch);

impl Watch for WithoutCheckpoints<'_> {
    fn progress(&self, done: u64, total: u64) {
        self.0.progress(done, total);
    }
    fn work(&self, unit: &'static str, amount: u64) {
        self.0.work(unit, amount);
    }
    fn log(&self, line: &str) {
        self.0.log(line);
    }
    fn raw(&self, file: RawFile) {
        self.0.raw(file);
    }
    fn sandbox(&self, how: &str) {
        self.0.sandbox(how);
    }
    fn child(&self, usage: Usage) {
        self.0.child(usage);
    }
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}
