//! What the driver of a run and a worker on another machine hand to each other: files in one folder per attempt. Each
//! is written under another name and renamed, so that it is whole or not there.
//!
//! ```text
//! jobs/<key>.<attempt>/task.json       driver: what to do
//!                      submitted.json  driver: what the queue calls it
//!                      abandoned       driver: nobody waits for this attempt any more
//!                      started.json    worker: where it runs
//!                      tmp/            worker: what it is writing
//!                      done.json       worker: what came of it
//! ```
//!
//! The folder may lie on a file system that shows new files late, and a folder is listed before a file in it is opened:
//! some remember that a file was not there. Knows nothing of queues.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{Digest, Environment, Output};

use super::execute::ExecutionRecord;
use super::job::Job;
use crate::config::Resources;

/// A job, and all that a worker needs beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTask {
    /// Only an answer with this belongs to this attempt.
    pub nonce: String,
    /// The driver's program: results of another one would be recorded as this one's.
    pub program: Digest,
    /// What to execute.
    pub job: Job,
    /// What was asked for it; it has as many threads as processors.
    pub resources: Resources,
    /// What is the same for all tasks of a run.
    pub settings: TaskSettings,
}

/// What the tasks of a run have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSettings {
    /// The cache of data sets.
    pub cache: PathBuf,
    /// A folder of copies of data sets.
    pub mirror: Option<PathBuf>,
    /// Whether the network must not be asked.
    pub offline: bool,
    /// Whether programs are confined.
    pub sandbox: bool,
    /// Seconds between checkpoints.
    pub checkpoint_every: u64,
}

/// What the queue calls an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submitted {
    /// A name that was given to the queue with it, by which it can be found again.
    pub tag: String,
    /// Its place among those with this name.
    pub index: usize,
    /// The queue's own name of it; none if the driver has not been told yet.
    pub id: Option<String>,
}

/// Where an attempt runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The machine, as its queue calls it.
    pub node: String,
    /// The process.
    pub process: u32,
    /// When it began, in microseconds since 1970.
    pub at: i64,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// As in the task.
    pub nonce: String,
    /// As in the task.
    pub key: Digest,
    /// The outputs, or why there are none.
    pub outcome: Outcome,
    /// What it took.
    pub execution: ExecutionRecord,
    /// Where it ran.
    pub environment: Environment,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// The objects are in the store.
    Made(Vec<Output>),
    /// The stage failed.
    Failed {
        /// What went wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
        /// The parameter that is to blame.
        param: Option<String>,
    },
    /// Somebody ended it before it was done: the queue, at its time limit.
    Stopped,
    /// A process that works for the stage was killed because the job's memory was used up.
    OutOfMemory,
    /// An input is not in the store as it was.
    LostInput(Digest),
}

const TASK: &str = "task.json";
const SUBMITTED: &str = "submitted.json";
const STARTED: &str = "started.json";
const DONE: &str = "done.json";
const ABANDONED: &str = "abandoned";

/// The folder of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover(PathBuf);

impl Handover {
    /// The folder of a past attempt.
    pub fn at(folder: PathBuf) -> Handover {
        Handover(folder)
    }

    /// The attempt of this key and number, if there is one.
    pub fn existing(jobs: &Path, key: &Digest, attempt: u32) -> Option<Handover> {
        let folder = jobs.join(format!("{key}.{attempt}"));
        folder.is_dir().then_some(Handover(folder))
    }

    /// A folder for a new attempt, with its task.
    pub fn create(jobs: &Path, attempt: u32, task: &QueueTask) -> io::Result<Handover> {
        let folder = jobs.join(format!("{}.{attempt}", task.job.key));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let handover = Handover(folder);
        handover.write(TASK, task)?;
        Ok(handover)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// What is to be done.
    pub fn task(&self) -> io::Result<QueueTask> {
        self.read(TASK)?
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What the queue calls it, if it was submitted.
    pub fn submitted(&self) -> Option<Submitted> {
        self.read(SUBMITTED).ok().flatten()
    }

    /// Notes what the queue calls it.
    pub fn note_submitted(&self, submitted: &Submitted) -> io::Result<()> {
        self.write(SUBMITTED, submitted)
    }

    /// Where it runs or ran, if it was started.
    pub fn started(&self) -> Option<Started> {
        self.read(STARTED).ok().flatten()
    }

    /// Notes that it runs here. One attempt runs once: a queue that starts it again is refused.
    pub fn note_started(&self, started: &Started) -> io::Result<()> {
        let text = serde_json::to_string(started)?;
        let path = self.0.join(STARTED);
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    /// What came of it, if this has its nonce.
    pub fn done(&self, nonce: &str) -> Option<Done> {
        let done: Done = self.read(DONE).ok().flatten()?;
        (done.nonce == nonce).then_some(done)
    }

    /// Says what came of it: the last thing that a worker does.
    pub fn note_done(&self, done: &Done) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(&serde_json::to_vec(done)?)?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(DONE))?;
        fs::File::open(&self.0)?.sync_all()
    }

    /// Nobody waits for it: it need not start, and what it says is not heard.
    pub fn abandon(&self) -> io::Result<()> {
        fs::write(self.0.join(ABANDONED), "")
    }

    /// Whether nobody waits for it.
    pub fn is_abandoned(&self) -> bool {
        self.lists(ABANDONED)
    }

    /// Removes all of it. Its worker may just be ending, and leave another file while we do.
    pub fn remove(&self) -> io::Result<()> {
        let mut removed = fs::remove_dir_all(&self.0);
        for _ in 0..10 {
            if removed.is_ok() || !self.0.exists() {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            removed = fs::remove_dir_all(&self.0);
        }
        removed
    }

    fn lists(&self, name: &str) -> bool {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name() == name)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        if !self.lists(name) {
            return Ok(None);
        }
        let bytes = fs::read(self.0.join(name))?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// Not synced, which takes milliseconds for each job: a driver that is killed has written it, a network file system
    /// sends it off when it is closed, and a machine that lost its power has lost the jobs on it too.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.persist(self.0.join(name))?;
        Ok(())
    }
}

/// The folder of all attempts: nobody else may read or write it. A nonce tells attempts apart, not people.
pub fn open_jobs(root: &Path) -> io::Result<PathBuf> {
    let jobs = std::path::absolute(root)?.join("jobs");
    match fs::DirBuilder::new().mode(0o700).create(&jobs) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check_owner(&jobs)?;
    Ok(jobs)
}

/// Whether the folder is this user's, and closed to others.
pub fn check_owner(jobs: &Path) -> io::Result<()> {
    let found = fs::metadata(jobs)?;
    let ours = tempfile::tempfile_in(jobs)?.metadata()?.uid();
    if found.uid() == ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = "it must be yours, and open to nobody else: `chmod 700` it";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The past attempts in a folder: key, number, folder.
pub fn attempts(jobs: &Path) -> Vec<(Digest, u32, Handover)> {
    let entries = fs::read_dir(jobs).into_iter().flatten().flatten();
    let attempts = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (key, attempt) = name.to_str()?.split_once('.')?;
        Some((
            key.parse().ok()?,
            attempt.parse().ok()?,
            Handover(entry.path()),
        ))
    });
    attempts.collect()
}

/// A word that nobody can guess.
pub fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
