//! An execution: as it has ended, as it is recorded, and as it is found in the cache.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::run::{Environment, RunId};
use crate::digest::Digest;
use crate::key::{CodeFiles, StageKey};
use crate::lease::Lease;

/// How much an execution did, by unit: `items`, `forward`. For rates; never part of a result.
pub type Work = BTreeMap<String, u64>;

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
    /// CPU time, where it is known.
    pub cpu: Option<Duration>,
    /// Peak memory in bytes, where it is known.
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
    /// Parameters that are defaults.
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
    /// How often it was resumed from a checkpoint; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u32>,
    /// The public key of who signed it, if it was taken from a remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
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
    /// Whether it was taken from a remote: objects of it that nobody has read may have been left there.
    pub taken: bool,
    /// What was changed of the record after it was sealed in the log: then nothing of it may be
    /// believed.
    pub altered: Option<String>,
}

/// A table that is written, but not yet safe from a power cut: `Store::commit` makes it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many rows it has.
    pub rows: u64,
    /// The size of its file.
    pub bytes: u64,
    /// Its columns in words: `x: Int64, t: Utf8`.
    pub schema: String,
}

/// An execution, as recorded, with everything needed to say how a table was made.
#[derive(Clone, Debug, Serialize)]
pub struct Execution {
    /// Its number.
    pub id: i64,
    /// The run that it belongs to.
    pub run: RunId,
    /// The stage instance.
    pub instance: String,
    /// What decided the result.
    pub key: StageKey,
    /// The digest of `key`.
    pub key_digest: Digest,
    /// When it started, in microseconds since 1970.
    pub started: i64,
    /// How long it took.
    pub wall: Duration,
    /// CPU time, where it is known.
    pub cpu: Option<Duration>,
    /// Peak memory in bytes, where it is known.
    pub peak_memory: Option<u64>,
    /// What it counted.
    pub work: Work,
    /// The message of the failure, if it failed.
    pub failure: Option<String>,
    /// What it printed.
    pub log: String,
    /// What it read.
    pub inputs: Vec<InputUsed>,
    /// What it made, in order.
    pub outputs: Vec<Output>,
    /// What else is known of it.
    pub facts: Facts,
    /// Where it ran.
    #[serde(serialize_with = "shared")]
    pub environment: Arc<Environment>,
}

fn shared<S: Serializer>(value: &Arc<Environment>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}

/// An execution that made a certain table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MadeBy {
    /// The execution's number.
    pub execution: i64,
    /// The run that it belongs to.
    pub run: RunId,
    /// The stage instance.
    pub instance: String,
    /// Which of its outputs the table is.
    pub output: String,
}
