//! The run log: every run, execution, end, tag and acceptance in the order of recording, each
//! entry sealed together with the one before. Whoever changes or removes a row afterwards breaks
//! a seal. It shows tampering to those who know the last seal; it does not prevent it.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Serialize;

use crate::columns::Json;
use crate::history::{Environments, one_execution};
use crate::{Digest, Error, Execution, Store};

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Run,
    Execution,
    End,
    Tag,
    Accept,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Run => "run",
            What::Execution => "execution",
            What::End => "end",
            What::Tag => "tag",
            What::Accept => "accept",
        }
    }
}

/// How the log is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// How many entries it has.
    pub entries: u64,
    /// The last seal: whoever wrote it down can tell whether anything before it was changed.
    pub head: Option<Digest>,
    /// What does not fit, in order.
    pub broken: Vec<String>,
    /// Executions that are older than the log.
    pub before: u64,
}

/// Adds entries to the log, and knows the last seal meanwhile.
pub(crate) struct Pen<'a> {
    rows: &'a Transaction<'a>,
    last: Option<Digest>,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(rows: &'a Transaction<'a>) -> rusqlite::Result<Pen<'a>> {
        let last = rows
            .prepare_cached("SELECT seal FROM log ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        Ok(Pen { rows, last })
    }

    pub(crate) fn add(&mut self, what: What, row: i64, content: Digest) -> rusqlite::Result<()> {
        let seal = seal(self.last, what.name(), row, content);
        self.rows
            .prepare_cached("INSERT INTO log (what, row, content, seal) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![what.name(), row, content, seal])?;
        self.last = Some(seal);
        Ok(())
    }
}

fn seal(before: Option<Digest>, what: &str, row: i64, content: Digest) -> Digest {
    digest(&("log/1", before, what, row, content))
}

fn digest(record: &impl Serialize) -> Digest {
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
        "SELECT r.started, r.pipeline, r.file, r.profile, r.settings, r.targets, e.digest
         FROM runs r JOIN environments e ON e.id = r.environment WHERE r.id = ?1",
    )?
    .query_row([id], |row| {
        let text = |n: usize| row.get::<_, Option<String>>(n);
        let started: i64 = row.get(0)?;
        let all = [text(1)?, text(2)?, text(3)?, text(4)?, text(5)?, text(6)?];
        Ok(digest(&(started, all)))
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

impl Store {
    /// Tests every seal, and every entry against the row that it is about.
    pub fn check_log(&self) -> Result<ChainReport, Error> {
        self.query("check the log in", check)
    }
}

/// More than this are counted, not listed.
const LISTED: usize = 20;

fn check(rows: &Connection) -> rusqlite::Result<ChainReport> {
    let mut report = ChainReport::default();
    let mut environments = Environments::new();
    // A run may be ended and tagged more than once; only the last word must fit its row.
    let mut ends: BTreeMap<i64, Digest> = BTreeMap::new();
    let mut tags: HashMap<Digest, i64> = HashMap::new();
    let mut seen_executions: Vec<i64> = Vec::new();
    let mut broken = Vec::new();
    let mut last_id = 0;
    let mut query = rows.prepare("SELECT id, what, row, content, seal FROM log ORDER BY id")?;
    let mut entries = query.query([])?;
    while let Some(entry) = entries.next()? {
        let (id, what, row): (i64, String, i64) = (entry.get(0)?, entry.get(1)?, entry.get(2)?);
        let (content, found): (Digest, Digest) = (entry.get(3)?, entry.get(4)?);
        report.entries += 1;
        if id != last_id + 1 {
            broken.push(format!(
                "log: entries {} to {} are gone",
                last_id + 1,
                id - 1
            ));
        }
        last_id = id;
        if seal(report.head, &what, row, content) != found {
            broken.push(format!(
                "log: entry {id} ({what} {row}) does not fit the one before"
            ));
        }
        report.head = Some(found);
        let now = match what.as_str() {
            "run" => run(rows, row)?,
            "execution" => {
                seen_executions.push(row);
                let it = one_execution(rows, row, &mut environments)?;
                it.as_ref().map(execution)
            }
            "end" => {
                ends.insert(row, content);
                continue;
            }
            "tag" => {
                tags.insert(content, row);
                continue;
            }
            "accept" => accept(rows, row)?,
            _ => None,
        };
        match now {
            Some(now) if now == content => {}
            Some(_) => broken.push(format!("{what} {row} was changed after it was recorded")),
            None => broken.push(format!("{what} {row} was removed after it was recorded")),
        }
    }
    let made: i64 = rows
        .query_row(
            "SELECT seq FROM sqlite_sequence WHERE name = 'log'",
            [],
            |row| row.get(0),
        )
        .optional()?
        .unwrap_or(0);
    if made > last_id {
        broken.push(format!("log: the last {} entries are gone", made - last_id));
    }
    for (id, content) in ends {
        if end(rows, id)?.is_some_and(|now| now != content) {
            broken.push(format!(
                "the end of run {id} was changed after it was recorded"
            ));
        }
    }
    tags_fit(rows, &tags, &mut broken)?;
    unlogged(rows, &seen_executions, &mut report, &mut broken)?;
    let count = broken.len();
    broken.truncate(LISTED);
    if count > LISTED {
        broken.push(format!("and {} more", count - LISTED));
    }
    report.broken = broken;
    Ok(report)
}

/// Tags that no entry knows. Those of an older format are older than the log, as are their runs.
fn tags_fit(
    rows: &Connection,
    known: &HashMap<Digest, i64>,
    broken: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let first: Option<i64> =
        rows.query_row("SELECT min(row) FROM log WHERE what = 'run'", [], |row| {
            row.get(0)
        })?;
    let mut query = rows.prepare("SELECT name, run FROM tags ORDER BY name")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let (name, run): (String, i64) = (row.get(0)?, row.get(1)?);
        if first.is_some_and(|first| run >= first) && !known.contains_key(&tag(&name, run)) {
            broken.push(format!(
                "the tag `{name}` was changed after it was recorded"
            ));
        }
    }
    Ok(())
}

/// Executions that are not in the log: before its beginning that is as it should be.
fn unlogged(
    rows: &Connection,
    logged: &[i64],
    report: &mut ChainReport,
    broken: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let first = logged.iter().min().copied();
    let logged: std::collections::HashSet<i64> = logged.iter().copied().collect();
    let mut query = rows.prepare("SELECT id, instance FROM executions ORDER BY id")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let (id, instance): (i64, String) = (row.get(0)?, row.get(1)?);
        if logged.contains(&id) {
            continue;
        }
        match first {
            Some(first) if id > first => {
                broken.push(format!(
                    "execution {id} (`{instance}`) is in no entry of the log"
                ));
            }
            _ => report.before += 1,
        }
    }
    Ok(())
}
