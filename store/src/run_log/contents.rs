//! What the log seals of each record, as a digest of what is in the database.

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;

use crate::digest::Digest;
use crate::records::Execution;
use crate::records::columns::Json;

pub(super) fn digest(record: &impl Serialize) -> Digest {
    Digest::of(Json(record).text().as_bytes())
}

/// What an execution says, as it is in the database.
pub(crate) fn execution(it: &Execution) -> Digest {
    let micros = |duration: std::time::Duration| duration.as_micros() as u64;
    digest(&(
        (it.run, &it.instance, it.key_digest, it.key.canonical()),
        (
            it.started,
            micros(it.wall),
            it.cpu.map(micros),
            it.peak_memory,
        ),
        (&it.work, &it.failure, &it.log, &it.facts),
        (&it.inputs, &it.outputs),
    ))
}

/// What the row of a run says, its end left out.
pub(crate) fn run(rows: &Connection, id: i64) -> rusqlite::Result<Option<Digest>> {
    rows.prepare_cached(
        "SELECT r.started, r.pipeline, r.file, r.profile, r.settings, r.targets, e.digest, r.source
         FROM runs r JOIN environments e ON e.id = r.environment WHERE r.id = ?1",
    )?
    .query_row([id], |row| {
        let text = |n: usize| row.get::<_, Option<String>>(n);
        let started: i64 = row.get(0)?;
        let all = [text(1)?, text(2)?, text(3)?, text(4)?, text(5)?, text(6)?];
        // Older runs have none, and are sealed without.
        Ok(match text(7)? {
            None => digest(&(started, all)),
            Some(source) => digest(&(started, all, source)),
        })
    })
    .optional()
}

/// How a run ended, and what became of every instance in it.
pub(crate) fn end(rows: &Connection, id: i64) -> rusqlite::Result<Option<Digest>> {
    let ended: Option<(Option<i64>, Option<String>)> = rows
        .prepare_cached("SELECT ended, outcome FROM runs WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some(ended) = ended else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let mut uses = rows.prepare_cached(
        "SELECT instance, status, key, execution FROM uses WHERE run = ?1 ORDER BY instance",
    )?;
    let mut uses = uses.query([id])?;
    while let Some(row) = uses.next()? {
        let one: (String, String, Option<String>, Option<i64>) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        hasher.update(Json(&one).text().as_bytes());
        hasher.update(b"\n");
    }
    let uses = Digest::from(*hasher.finalize().as_bytes());
    Ok(Some(digest(&(ended, uses))))
}

/// What a tag says.
pub(crate) fn tag(name: &str, run: i64) -> Digest {
    digest(&(name, run))
}

/// What an acceptance says.
pub(crate) fn accept(rows: &Connection, id: i64) -> rusqlite::Result<Option<Digest>> {
    rows.prepare_cached(
        "SELECT instance, execution, old_code, new_code, new_key, who, at, reason
         FROM acceptances WHERE id = ?1",
    )?
    .query_row([id], |row| {
        let text = |n: usize| row.get::<_, String>(n);
        let numbers: (i64, i64) = (row.get(1)?, row.get(6)?);
        let texts = [text(0)?, text(2)?, text(3)?, text(4)?, text(5)?, text(7)?];
        Ok(digest(&(numbers, texts)))
    })
    .optional()
}

/// What a note says.
pub(crate) fn note(rows: &Connection, id: i64) -> rusqlite::Result<Option<Digest>> {
    rows.prepare_cached("SELECT fault, at FROM noted WHERE id = ?1")?
        .query_row([id], |row| {
            let (fault, at): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok(digest(&(fault, at)))
        })
        .optional()
}
