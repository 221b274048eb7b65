//! Reads records back from rows: an execution with all that belongs to it.
//! Knows nothing of whether they are as they were sealed.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::columns::Json;
use super::execution::{Execution, Facts, InputUsed, Output, Work};
use super::run::{Environment, RunId};
use super::time::duration;
use crate::digest::Digest;
use crate::key::CodeFiles;

/// What distinguishes machines and commits. Runs are sealed with it.
pub(crate) fn environment_digest(environment: &Environment) -> Digest {
    Digest::of(Json(environment).text().as_bytes())
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
                 x.sandbox, x.environment, x.resumed, x.signer
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

pub(crate) fn environment(row: &Row<'_>) -> rusqlite::Result<Environment> {
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
            resumed: row.get(18)?,
            signer: row.get(19)?,
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
