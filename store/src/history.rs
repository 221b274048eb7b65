//! Reads back what happened: runs, executions, what they read and made.
//! Writes nothing, and knows nothing of objects on the disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Serialize, Serializer};

use crate::chain;
use crate::columns::Json;
use crate::error::At;
use crate::open::lock;
use crate::provenance::duration;
use crate::{
    Digest, Environment, Error, Facts, InputUsed, Output, RunId, RunOutcome, StageKey, Status,
    Store, Work,
};

/// The source files behind a code fingerprint, with their digests.
pub type CodeFiles = BTreeMap<String, Digest>;

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
    /// The digest of its text, see [`Store::text`]; `None` if it was not kept.
    pub source: Option<Digest>,
    /// The profile, if one was chosen.
    pub profile: Option<String>,
    /// What `--set` changed, as JSON.
    pub settings: String,
    /// The targets asked for; empty means all.
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
    /// Processor time, where it could be told.
    pub cpu: Option<Duration>,
    /// The most memory used, in bytes, where it could be told.
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

impl Store {
    /// The newest runs, newest first.
    pub fn runs(&self, limit: usize) -> Result<Vec<Run>, Error> {
        self.query("read the runs in", |rows| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let sql = format!("{SELECT_RUN} ORDER BY r.id DESC LIMIT ?1");
            rows.prepare_cached(&sql)?
                .query_map([limit], run)?
                .collect()
        })
    }

    /// Whether a tag names a run that the log does not say it names.
    pub fn altered_tag(&self, name: &str, run: RunId) -> Result<bool, Error> {
        self.query("read the log in", |rows| {
            let mut entries = rows.prepare_cached(
                "SELECT row, content FROM log WHERE what = 'tag' ORDER BY id DESC",
            )?;
            let mut entries = entries.query([])?;
            while let Some(entry) = entries.next()? {
                let (row, content): (i64, Digest) = (entry.get(0)?, entry.get(1)?);
                // The newest entry about this name decides. Older tags are not in the log.
                if chain::tag(name, row) == content {
                    return Ok(row != run.0);
                }
            }
            Ok(false)
        })
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        self.query("read a run in", |rows| {
            let sql = format!("{SELECT_RUN} WHERE r.id = ?1");
            rows.prepare_cached(&sql)?.query_row([id.0], run).optional()
        })
    }

    /// What became of every stage instance in a run, in the order of their names.
    pub fn uses(&self, run: RunId) -> Result<Vec<UseRecord>, Error> {
        self.query("read a run in", |rows| {
            rows.prepare_cached(
                "SELECT instance, status, key, execution, wall FROM uses
                 WHERE run = ?1 ORDER BY instance",
            )?
            .query_map([run.0], |row| {
                Ok(UseRecord {
                    instance: row.get(0)?,
                    status: row.get(1)?,
                    key: row.get(2)?,
                    execution: row.get(3)?,
                    wall: duration(row.get(4)?),
                })
            })?
            .collect()
        })
    }

    /// One execution with its inputs, outputs and log.
    pub fn execution(&self, id: i64) -> Result<Option<Execution>, Error> {
        self.query("read an execution in", |rows| {
            one_execution(rows, id, &mut Environments::new())
        })
    }

    /// The executions that made this table, newest first. Two stages may make the same bytes.
    pub fn executions_of_output(&self, digest: &Digest) -> Result<Vec<MadeBy>, Error> {
        self.query("read the outputs in", |rows| {
            rows.prepare_cached(
                "SELECT x.id, x.run, x.instance, o.name FROM outputs o
                 JOIN executions x ON x.id = o.execution
                 WHERE o.digest = ?1 ORDER BY x.id DESC, o.ordinal",
            )?
            .query_map([digest], |row| {
                Ok(MadeBy {
                    execution: row.get(0)?,
                    run: RunId(row.get(1)?),
                    instance: row.get(2)?,
                    output: row.get(3)?,
                })
            })?
            .collect()
        })
    }

    /// The sources behind a code fingerprint, if it was ever recorded.
    pub fn code_files(&self, code: &Digest) -> Result<Option<CodeFiles>, Error> {
        self.query("read the codes in", |rows| files_of(rows, code))
    }

    /// The text of a pipeline file as a run read it.
    pub fn text(&self, digest: &Digest) -> Result<Option<String>, Error> {
        self.query("read a pipeline file in", |rows| {
            rows.prepare_cached("SELECT text FROM texts WHERE digest = ?1")?
                .query_row([digest], |row| row.get(0))
                .optional()
        })
    }

    /// All tags with their runs, in the order of their names.
    pub fn tags(&self) -> Result<Vec<(String, RunId)>, Error> {
        self.query("read the tags in", |rows| {
            rows.prepare_cached("SELECT name, run FROM tags ORDER BY name")?
                .query_map([], |row| Ok((row.get(0)?, RunId(row.get(1)?))))?
                .collect()
        })
    }

    pub(crate) fn query<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        read(&lock(&self.reader)).at(doing, &self.database())
    }
}

/// Environments that were read before, by their rows: a thousand executions share a few.
pub(crate) type Environments = HashMap<i64, Arc<Environment>>;

/// An execution with all that belongs to it.
pub(crate) fn one_execution(
    rows: &Connection,
    id: i64,
    known: &mut Environments,
) -> rusqlite::Result<Option<Execution>> {
    let found = rows
        .prepare_cached(
            "SELECT coalesce((SELECT id FROM environments WHERE digest = x.environment), r.environment),
                 x.id, x.run, x.instance, x.key_json, x.key, x.started, x.wall,
                 x.cpu, x.peak_memory, x.message, x.log, x.work, x.defaults, x.determinism, x.raw,
                 x.sandbox, x.environment
             FROM executions x JOIN runs r ON r.id = x.run WHERE x.id = ?1",
        )?
        .query_row([id], |row| Ok((row.get(0)?, execution(row)?)))
        .optional()?;
    let Some((place, mut found)) = found else {
        return Ok(None);
    };
    found.environment = match known.get(&place) {
        Some(environment) => environment.clone(),
        None => {
            let read = Arc::new(one_environment(rows, place)?);
            known.insert(place, read.clone());
            read
        }
    };
    found.inputs = inputs(rows, id)?;
    found.outputs = outputs(rows, id)?;
    Ok(Some(found))
}

pub(crate) fn files_of(rows: &Connection, code: &Digest) -> rusqlite::Result<Option<CodeFiles>> {
    let files = rows
        .prepare_cached("SELECT files FROM codes WHERE digest = ?1")?
        .query_row([code], |row| row.get(0))
        .optional()?;
    Ok(files.map(|Json(files)| files))
}

pub(crate) fn one_environment(rows: &Connection, id: i64) -> rusqlite::Result<Environment> {
    rows.prepare_cached(
        "SELECT git_commit, git_dirty, ablate, crates, rustc, host, os, cpu_model, cpu_features,
             threads FROM environments WHERE id = ?1",
    )?
    .query_row([id], environment)
}

const SELECT_RUN: &str = "SELECT e.git_commit, e.git_dirty, e.ablate, e.crates, e.rustc, e.host, \
    e.os, e.cpu_model, e.cpu_features, e.threads, r.id, r.started, r.ended, r.outcome, r.pipeline, \
    r.file, r.profile, r.settings, r.targets, r.source, \
    (SELECT json_group_array(name) FROM (SELECT name FROM tags WHERE run = r.id ORDER BY name)) \
    FROM runs r JOIN environments e ON e.id = r.environment";

fn environment(row: &Row<'_>) -> rusqlite::Result<Environment> {
    Ok(Environment {
        git_commit: row.get(0)?,
        git_dirty: row.get(1)?,
        ablate: row.get(2)?,
        crates: row.get::<_, Json<_>>(3)?.0,
        rustc: row.get(4)?,
        host: row.get(5)?,
        os: row.get(6)?,
        cpu_model: row.get(7)?,
        cpu_features: row.get::<_, Json<_>>(8)?.0,
        threads: row.get(9)?,
    })
}

fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: RunId(row.get(10)?),
        started: row.get(11)?,
        ended: row.get(12)?,
        outcome: row.get(13)?,
        pipeline: row.get(14)?,
        file: row.get(15)?,
        profile: row.get(16)?,
        settings: row.get(17)?,
        targets: row.get::<_, Json<_>>(18)?.0,
        source: row.get(19)?,
        tags: row.get::<_, Json<_>>(20)?.0,
        environment: environment(row)?,
    })
}

fn execution(row: &Row<'_>) -> rusqlite::Result<Execution> {
    let json = |column: usize| row.get::<_, Option<Json<_>>>(column);
    Ok(Execution {
        environment: Arc::default(),
        id: row.get(1)?,
        run: RunId(row.get(2)?),
        instance: row.get(3)?,
        key: row.get::<_, Json<_>>(4)?.0,
        key_digest: row.get(5)?,
        started: row.get(6)?,
        wall: duration(row.get(7)?),
        cpu: row.get::<_, Option<i64>>(8)?.map(duration),
        peak_memory: row.get(9)?,
        failure: row.get(10)?,
        log: row.get(11)?,
        work: work(row, 12)?,
        facts: Facts {
            defaults: json(13)?.map(|Json(list)| list),
            determinism: row.get(14)?,
            raw: row
                .get::<_, Option<Json<_>>>(15)?
                .map_or_else(Vec::new, |Json(list)| list),
            sandbox: row.get(16)?,
            environment: row.get(17)?,
        },
        inputs: Vec::new(),
        outputs: Vec::new(),
    })
}

/// What was counted, in a column that is NULL if nothing was.
pub(crate) fn work(row: &Row<'_>, column: usize) -> rusqlite::Result<Work> {
    let work: Option<Json<Work>> = row.get(column)?;
    Ok(work.map(|Json(work)| work).unwrap_or_default())
}

pub(crate) fn inputs(rows: &Connection, execution: i64) -> rusqlite::Result<Vec<InputUsed>> {
    rows.prepare_cached(
        "SELECT port, ordinal, axes, producer, digest FROM inputs
         WHERE execution = ?1 ORDER BY port, ordinal",
    )?
    .query_map([execution], |row| {
        Ok(InputUsed {
            port: row.get(0)?,
            ordinal: row.get(1)?,
            axes: row.get(2)?,
            producer: row.get(3)?,
            digest: row.get(4)?,
        })
    })?
    .collect()
}

pub(crate) fn outputs(rows: &Connection, execution: i64) -> rusqlite::Result<Vec<Output>> {
    rows.prepare_cached(
        "SELECT name, digest, row_count, bytes, columns FROM outputs
         WHERE execution = ?1 ORDER BY ordinal",
    )?
    .query_map(params![execution], |row| {
        Ok(Output {
            name: row.get(0)?,
            digest: row.get(1)?,
            rows: row.get(2)?,
            bytes: row.get(3)?,
            schema: row.get(4)?,
        })
    })?
    .collect()
}
