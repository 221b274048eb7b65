//! Reads back what happened: runs, executions, what they read and made.
//! Writes nothing, and knows nothing of objects on the disk.

use rusqlite::{OptionalExtension, Row};

use crate::digest::Digest;
use crate::error::Error;
use crate::key::CodeFiles;
use crate::records::columns::Json;
use crate::records::rows::{Environments, environment, files_of, one_execution};
use crate::records::time::duration;
use crate::records::{Execution, MadeBy, Run, RunId, UseRecord};
use crate::run_log::contents;
use crate::store::Store;

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
                if contents::tag(name, row) == content {
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

    /// How many bytes an object has, as the execution that made it recorded.
    pub fn recorded_bytes(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        self.query("read the outputs in", |rows| {
            rows.prepare_cached("SELECT max(bytes) FROM outputs WHERE digest = ?1")?
                .query_row([digest], |row| row.get::<_, Option<i64>>(0))
        })
        .map(|bytes| bytes.map(i64::unsigned_abs))
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
}

const SELECT_RUN: &str = "SELECT e.git_commit, e.git_dirty, e.ablate, e.crates, e.rustc, e.host, \
    e.os, e.cpu_model, e.cpu_features, e.threads, r.id, r.started, r.ended, r.outcome, r.pipeline, \
    r.file, r.profile, r.settings, r.targets, r.source, \
    (SELECT json_group_array(name) FROM (SELECT name FROM tags WHERE run = r.id ORDER BY name)) \
    FROM runs r JOIN environments e ON e.id = r.environment";

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
