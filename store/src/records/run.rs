//! A run, where it ran, and what became of every stage instance in it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
    /// The targets; empty means all.
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
    /// All targets have results.
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

/// A run, as recorded.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// When it began, in microseconds since 1970.
    pub started: i64,
    /// When it ended; `None` while it runs, or if its process died.
    pub ended: Option<i64>,
    /// How it ended.
    pub outcome: Option<RunOutcome>,
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file's name.
    pub file: String,
    /// The digest of its text, see `Store::text`; `None` if it was not kept.
    pub source: Option<Digest>,
    /// The profile, if one was chosen.
    pub profile: Option<String>,
    /// What `--set` changed, as JSON.
    pub settings: String,
    /// The targets; empty means all.
    pub targets: Vec<String>,
    /// The names given to it.
    pub tags: Vec<String>,
    /// Where it ran.
    pub environment: Environment,
}

/// What became of a stage instance in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UseRecord {
    /// The stage instance.
    pub instance: String,
    /// What became of it.
    pub status: Status,
    /// Its key, where its inputs were known.
    pub key: Option<Digest>,
    /// The execution behind it: this run's own, or the one found in the cache.
    pub execution: Option<i64>,
    /// How long this run spent on it.
    pub wall: Duration,
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
