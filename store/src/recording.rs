//! Writes what happened: runs, executions, and which run used which.
//! Only adds rows; the one change to an old row is that a run has ended.
//!
//! The order in `commit` is the promise of the store: bytes on the disk, then names,
//! then rows, then leases. A crash between two of them leaves at worst files that no row names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::acceptance::accepted;
use crate::database::migrations;
use crate::digest::Digest;
use crate::error::{At, Error};
use crate::mutex::lock;
use crate::records::columns::Json;
use crate::records::rows::{Environments, environment_digest, one_execution};
use crate::records::time::{micros, now};
use crate::records::{Environment, Finished, NewRun, RunId, RunOutcome, Status, Use};
use crate::run_log::{EntryKind, LogWriter, contents, is_sealed};
use crate::store::Store;

impl Store {
    /// Records that a run begins. It counts as under way until it ends or its process does.
    pub fn begin_run(&self, run: &NewRun) -> Result<RunId, Error> {
        let mut taken = Ok(());
        let id = self.transaction("record a run in", |rows| {
            let id = insert_run(rows, run)?;
            // Before others can see the run: it must never look dead.
            taken = self.mark_running(id);
            Ok(id)
        })?;
        taken.map(|()| id)
    }

    /// Makes a batch of executions and their outputs durable, then visible to all, and gives
    /// their leases back. All of it or, after an error, none of it. Of a result that was taken from a remote, objects
    /// may have been left there.
    pub fn commit(&self, batch: Vec<Finished>, uses: &[Use]) -> Result<(), Error> {
        let mut writer = lock(&self.writer);
        let mut digests: BTreeSet<Digest> = BTreeSet::new();
        for one in &batch {
            let outputs = one.outcome.iter().flatten();
            let outputs = outputs.map(|(_, staged)| staged.digest);
            match one.facts.signer {
                None => digests.extend(outputs),
                Some(_) => digests.extend(outputs.filter(|digest| self.has(digest))),
            }
        }
        self.make_durable(&digests)?;
        self.record(&mut writer, &batch, uses)
        // The leases end here, with `batch`.
    }

    /// Makes objects durable that were taken in without an execution: those of results that are recorded already.
    pub fn keep_objects(&self, digests: &BTreeSet<Digest>) -> Result<(), Error> {
        let _writer = lock(&self.writer);
        self.make_durable(digests)
    }

    /// Records that a run has ended, and looks whether all of it can be found by others.
    pub fn end_run(&self, run: RunId, outcome: RunOutcome) -> Result<(), Error> {
        let ended = self.transaction("record the end of a run in", |rows| {
            rows.execute(
                "UPDATE runs SET ended = ?2, outcome = ?3 WHERE id = ?1",
                params![run.0, now(), outcome],
            )?;
            let Some(content) = contents::end(rows, run.0)? else {
                return Ok(None);
            };
            LogWriter::new(rows)?.add(EntryKind::End, run.0, content)?;
            Ok(Some(content))
        });
        self.unmark_running(run);
        match ended? {
            None => Err(Error::NoSuchRun(run.0)),
            Some(content) => self.can_be_found(run, content),
        }
    }

    /// Whether somebody who opens the database anew finds the end of this run as it was recorded,
    /// with every stage in it. Our own connections would find it in a file that has no name any more.
    fn can_be_found(&self, run: RunId, end: Digest) -> Result<(), Error> {
        let path = self.database();
        let found = migrations::open_reader(&path).and_then(|anew| {
            let now = contents::end(&anew, run.0).at("read back", &path)?;
            let sealed = is_sealed(&anew, EntryKind::End, run.0).at("read back", &path)?;
            Ok(now == Some(end) && sealed)
        });
        // What happened to the file says more than what SQLite makes of it.
        self.watched.check()?;
        match found {
            Ok(true) => Ok(()),
            // Its -wal may be gone, for example.
            Ok(false) | Err(Error::Database { .. }) => {
                Err(self.watched.lost("changed or damaged by another program"))
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a run a name, which also keeps its artifacts from gc.
    /// A name belongs to one run: the run that had it before, if any, is returned.
    pub fn tag(&self, run: RunId, name: &str) -> Result<Option<RunId>, Error> {
        let before = self.transaction("record a tag in", |rows| {
            let known = rows
                .query_row("SELECT 1 FROM runs WHERE id = ?1", [run.0], |_| Ok(()))
                .optional()?;
            if known.is_none() {
                return Ok(None);
            }
            set_tag(rows, run, name).map(Some)
        })?;
        before.ok_or(Error::NoSuchRun(run.0))
    }

    fn record(
        &self,
        writer: &mut Connection,
        batch: &[Finished],
        uses: &[Use],
    ) -> Result<(), Error> {
        self.written("record results in", writer, |rows| {
            insert_results(rows, batch, uses)
        })
    }
}

fn insert_run(rows: &Transaction<'_>, run: &NewRun) -> rusqlite::Result<RunId> {
    let environment = insert_environment(rows, &run.environment)?;
    let source = Digest::of(run.source.as_bytes());
    rows.execute(
        "INSERT OR IGNORE INTO texts (digest, text) VALUES (?1, ?2)",
        params![source, run.source],
    )?;
    rows.execute(
        "INSERT INTO runs
             (started, pipeline, file, profile, settings, targets, environment, source)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            now(),
            run.pipeline,
            run.file,
            run.profile,
            run.settings,
            Json(&run.targets),
            environment,
            source
        ],
    )?;
    let id = RunId(rows.last_insert_rowid());
    let content = contents::run(rows, id.0)?.expect("just inserted");
    LogWriter::new(rows)?.add(EntryKind::Run, id.0, content)?;
    if let Some(name) = &run.tag {
        set_tag(rows, id, name)?;
    }
    Ok(id)
}

fn insert_environment(rows: &Transaction<'_>, e: &Environment) -> rusqlite::Result<i64> {
    let digest = environment_digest(e);
    rows.execute(
        "INSERT OR IGNORE INTO environments (digest, git_commit, git_dirty, ablate, crates, rustc,
             host, os, cpu_model, cpu_features, threads)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            digest,
            e.git_commit,
            e.git_dirty,
            e.ablate,
            Json(&e.crates),
            e.rustc,
            e.host,
            e.os,
            e.cpu_model,
            Json(&e.cpu_features),
            e.threads
        ],
    )?;
    rows.query_row(
        "SELECT id FROM environments WHERE digest = ?1",
        [digest],
        |row| row.get(0),
    )
}

fn set_tag(rows: &Transaction<'_>, run: RunId, name: &str) -> rusqlite::Result<Option<RunId>> {
    let before = rows
        .query_row("SELECT run FROM tags WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    rows.execute(
        "INSERT OR REPLACE INTO tags (name, run) VALUES (?1, ?2)",
        params![name, run.0],
    )?;
    LogWriter::new(rows)?.add(EntryKind::Tag, run.0, contents::tag(name, run.0))?;
    Ok(before.map(RunId))
}

fn insert_results(
    rows: &Transaction<'_>,
    batch: &[Finished],
    uses: &[Use],
) -> rusqlite::Result<()> {
    let mut codes = HashMap::new();
    let mut log = LogWriter::new(rows)?;
    let mut environments = Environments::new();
    let mut places = Vec::new();
    for one in batch {
        let code = match codes.get(&one.key.code) {
            Some(code) => *code,
            None => {
                let code = insert_code(rows, one)?;
                codes.insert(one.key.code, code);
                code
            }
        };
        let place = match &one.environment {
            Some(environment) => Some(place(rows, environment, &mut places)?),
            None => None,
        };
        let id = insert_execution(rows, one, code, place)?;
        // As it is in the database, not as we meant it.
        let written = one_execution(rows, id, &mut environments)?;
        let written = written.expect("just inserted");
        log.add(EntryKind::Execution, id, contents::execution(&written))?;
    }
    uses.iter().try_for_each(|one| insert_use(rows, one))
}

/// The digest of an environment that is recorded. The executions of a batch share a few.
fn place(
    rows: &Transaction<'_>,
    environment: &Arc<Environment>,
    known: &mut Vec<(Arc<Environment>, Digest)>,
) -> rusqlite::Result<Digest> {
    let found = known.iter().find(|(one, _)| Arc::ptr_eq(one, environment));
    if let Some((_, digest)) = found {
        return Ok(*digest);
    }
    insert_environment(rows, environment)?;
    let digest = environment_digest(environment);
    known.push((environment.clone(), digest));
    Ok(digest)
}

fn insert_code(rows: &Transaction<'_>, one: &Finished) -> rusqlite::Result<i64> {
    rows.prepare_cached("INSERT OR IGNORE INTO codes (digest, files) VALUES (?1, ?2)")?
        .execute(params![one.key.code, Json(one.code.as_ref())])?;
    rows.prepare_cached("SELECT id FROM codes WHERE digest = ?1")?
        .query_row([one.key.code], |row| row.get(0))
}

fn insert_execution(
    rows: &Transaction<'_>,
    one: &Finished,
    code: i64,
    environment: Option<Digest>,
) -> rusqlite::Result<i64> {
    let message = one.outcome.as_ref().err();
    rows.prepare_cached(
        "INSERT INTO executions (run, instance, kind, key, key_json, code, seed, started, wall, cpu,
             peak_memory, ok, message, log, work, defaults, determinism, raw, sandbox,
             environment, resumed, signer)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?19, ?20, ?21, ?22)",
    )?
    .execute(params![
        one.run.0,
        one.instance,
        one.key.kind,
        one.key_digest,
        one.key.canonical(),
        code,
        one.key.seed.map(|seed| seed.to_string()),
        one.started,
        micros(one.wall),
        one.cpu.map(micros),
        one.peak_memory,
        message.is_none(),
        message,
        one.log,
        (!one.work.is_empty()).then_some(Json(&one.work)),
        one.facts.defaults.as_ref().map(Json),
        one.facts.determinism,
        (!one.facts.raw.is_empty()).then_some(Json(&one.facts.raw)),
        one.facts.sandbox,
        environment,
        one.facts.resumed,
        one.facts.signer
    ])?;
    let execution = rows.last_insert_rowid();
    for input in &one.inputs {
        rows.prepare_cached(
            "INSERT INTO inputs (execution, port, ordinal, axes, producer, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            execution,
            input.port,
            input.ordinal,
            input.axes,
            input.producer,
            input.digest
        ])?;
    }
    for (ordinal, (name, staged)) in one.outcome.iter().flatten().enumerate() {
        rows.prepare_cached(
            "INSERT INTO outputs (execution, ordinal, name, digest, row_count, bytes, columns)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            execution,
            ordinal,
            name,
            staged.digest,
            staged.rows,
            staged.bytes,
            staged.schema
        ])?;
    }
    Ok(execution)
}

fn insert_use(rows: &Transaction<'_>, one: &Use) -> rusqlite::Result<()> {
    // What this run did itself is in this run; what it found may be in any.
    let execution: Option<i64> = match one.status {
        Status::Skipped => None,
        Status::Hit => rows
            .prepare_cached("SELECT max(id) FROM executions WHERE key = ?1 AND ok = 1")?
            .query_row([one.key], |row| row.get::<_, Option<i64>>(0))?
            .map_or_else(
                || accepted(rows, &one.key.unwrap_or(Digest::of(b""))),
                |id| Ok(Some(id)),
            )?,
        Status::Ran | Status::Failed => rows
            .prepare_cached(
                "SELECT max(id) FROM executions WHERE key = ?1 AND ok = ?2 AND run = ?3",
            )?
            .query_row(
                params![one.key, one.status == Status::Ran, one.run.0],
                |row| row.get(0),
            )?,
    };
    rows.prepare_cached(
        "INSERT OR REPLACE INTO uses (run, instance, status, key, execution, wall)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        one.run.0,
        one.instance,
        one.status,
        one.key,
        execution,
        micros(one.wall)
    ])?;
    Ok(())
}
