//! What provenance records: runs, executions, what they read and wrote, and where they ran.
//! Plain data; `provenance.rs` writes it and `history.rs` reads it back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CodeFiles, Digest, Lease, StageKey, Staged};

/// The number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How much an execution did, by unit: `items`, `forward`. For rates; never part of a result.
pub type Work = BTreeMap<String, u64>;

/// A run that begins.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file's name, without its folder.
    pub file: String,
    /// The text of that file.
    pub source: String,
    /// The profile, if one was chosen.
    pub profile: Option<String>,
    /// What `--set` changed, as JSON.
    pub settings: String,
    /// The targets asked for; empty means all.
    pub targets: Vec<String>,
    /// Where it runs.
    pub environment: Environment,
    /// A name that keeps the run's artifacts from gc.
    pub tag: Option<String>,
}

/// Where something ran. Nothing secret: no environment variables, no paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The commit that is checked out beside the pipeline file.
    pub git_commit: Option<String>,
    /// Whether files differ from that commit.
    pub git_dirty: Option<bool>,
    /// This program's version.
    pub ablate: String,
    /// Versions of the crates that compute.
    pub crates: BTreeMap<String, String>,
    /// The compiler's version.
    pub rustc: String,
    /// The machine's name.
    pub host: String,
    /// The operating system and its version.
    pub os: String,
    /// The processor's name.
    pub cpu_model: String,
    /// Its instruction sets that matter to numbers.
    pub cpu_features: Vec<String>,
    /// How many threads may run at once.
    pub threads: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// Everything asked for is there.
    Ok,
    /// At least one stage failed.
    Failed,
    /// Somebody stopped it.
    Interrupted,
}

/// What became of a stage instance in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was executed in this run.
    Ran,
    /// Its result was found in the cache.
    Hit,
    /// It was executed in this run and failed.
    Failed,
    /// It was not executed, because something that it needs failed.
    Skipped,
}

/// One execution that has ended, well or badly.
#[derive(Debug)]
pub struct Finished {
    /// The run that it belongs to.
    pub run: RunId,
    /// The stage instance, for example `scaled[scale=1]`.
    pub instance: String,
    /// What decided the result.
    pub key: StageKey,
    /// The digest of `key`.
    pub key_digest: Digest,
    /// The sources behind `key.code`; stored once for each fingerprint.
    pub code: Arc<CodeFiles>,
    /// When it started, in microseconds since 1970.
    pub started: i64,
    /// How long it took.
    pub wall: Duration,
    /// Processor time, where it can be told.
    pub cpu: Option<Duration>,
    /// The most memory used, in bytes, where it can be told.
    pub peak_memory: Option<u64>,
    /// What it counted.
    pub work: Work,
    /// The outputs in order, or the message of the failure.
    pub outcome: Result<Vec<(String, Staged)>, String>,
    /// What it printed.
    pub log: String,
    /// What it read.
    pub inputs: Vec<InputUsed>,
    /// Where it ran; `None`: where its run was started.
    pub environment: Option<Arc<Environment>>,
    /// What else is known of it.
    pub facts: Facts,
    /// Given back only when the result is recorded; sooner, and another process would run it again.
    pub lease: Option<Lease>,
}

/// What is recorded of an execution for those who audit it. Never part of a key or a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Parameters that nobody wrote: the key has the kind's defaults.
    /// `None`: recorded by a program that did not know.
    pub defaults: Option<Vec<String>>,
    /// What the kind promises of its bytes, in a word.
    pub determinism: Option<String>,
    /// Files from outside the pipeline that it read.
    pub raw: Vec<RawFile>,
    /// How its program was confined, if it had one.
    pub sandbox: Option<String>,
    /// The digest of the environment that it ran in; filled in when it is recorded.
    /// `None`: recorded by a program that took it to be its run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Digest>,
}

/// A file of a data set, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawFile {
    /// What it is called where it comes from.
    pub name: String,
    /// The checksum that its bytes had: `sha256:…`.
    pub checksum: String,
    /// Its size.
    pub bytes: u64,
}

/// One table that an execution read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputUsed {
    /// The port that received it.
    pub port: String,
    /// Its place among the tables of a port that collects an axis; 0 otherwise.
    pub ordinal: u32,
    /// The producer's axis values, as JSON.
    pub axes: Option<String>,
    /// The instance that made it.
    pub producer: String,
    /// Its contents.
    pub digest: Digest,
}

/// One table that an execution made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The output's name.
    pub name: String,
    /// Its contents.
    pub digest: Digest,
    /// How many rows it has.
    pub rows: u64,
    /// The size of its file.
    pub bytes: u64,
    /// Its columns in words: `x: Int64, t: Utf8`.
    pub schema: String,
}

/// What became of one stage instance in a run; the execution behind it is found by the key.
#[derive(Clone, Debug)]
pub struct Use {
    /// The run.
    pub run: RunId,
    /// The stage instance.
    pub instance: String,
    /// What became of it.
    pub status: Status,
    /// Its key, where its inputs were known.
    pub key: Option<Digest>,
    /// How long this run spent on it.
    pub wall: Duration,
}

/// A result in the cache. Whether its objects are still there is another question, and whether its
/// record is still what was recorded is in `altered`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The execution that made it.
    pub execution: i64,
    /// Its outputs in order.
    pub outputs: Vec<Output>,
    /// How long it took to make.
    pub wall: Duration,
    /// What was counted meanwhile.
    pub work: Work,
    /// What was changed of the record after it was sealed in the log: then nothing of it may be
    /// believed.
    pub altered: Option<String>,
}
