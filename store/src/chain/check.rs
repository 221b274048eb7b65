//! Tests the log: every seal, every entry against the row that it is about, and every row
//! against the entries. A row that cannot be read is a fault like others, and ends nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension, ToSql};
use serde::Serialize;

use super::{Pen, What, accept, end, execution, note, run, seal, tag};
use crate::history::{Environments, files_of, one_environment, one_execution};
use crate::key::code_digest;
use crate::provenance::{environment_digest, now};
use crate::{Digest, Error, Execution, Store};

/// How the log is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// How many entries it has.
    pub entries: u64,
    /// The last seal: whoever wrote it down can tell whether anything before it was changed.
    pub head: Option<Digest>,
    /// What does not fit, in order.
    pub broken: Vec<String>,
    /// What does not fit and somebody has noted before.
    pub noted: Vec<String>,
    /// What a note of each of `broken` would say.
    #[serde(skip)]
    pub(crate) news: Vec<String>,
    /// Executions that are older than the log.
    pub before: u64,
}

impl Store {
    /// Tests every seal, and every entry against the row that it is about, all as they were at
    /// one moment: others may be writing.
    pub fn check_log(&self) -> Result<ChainReport, Error> {
        let _one_moment = self.snapshot();
        self.query("check the log in", check)
    }

    /// What was changed, after it was recorded, of these executions and of their runs.
    pub fn altered<'a>(
        &self,
        executions: impl Iterator<Item = &'a Execution>,
    ) -> Result<Vec<String>, Error> {
        self.query("check the log in", |rows| {
            let mut found = Vec::new();
            let begins = Beginning::of(rows)?;
            let (mut runs, mut codes) = (HashSet::new(), BTreeSet::new());
            for it in executions {
                let beside = beside(rows, it)?;
                match beside.sealed {
                    Some(was) if was != execution(it) => found.push(changed("execution", it.id)),
                    None if !begins.is_older(it.run.0) => {
                        found.push(unlogged_execution(it.id, &it.instance));
                    }
                    _ => {}
                }
                found.extend(beside.misfit);
                let id = it.run.0;
                codes.insert(it.key.code);
                if runs.insert(id)
                    && let Some(was) = sealed(rows, What::Run, id)?
                    && run(rows, id)? != Some(was)
                {
                    found.push(changed("run", id));
                }
            }
            for code in codes {
                found.extend(code_fault(rows, &code)?);
            }
            for (id, fault) in environment_faults(rows)? {
                let used = rows
                    .prepare_cached("SELECT id FROM runs WHERE environment = ?1")?
                    .query_map([id], |row| row.get::<_, i64>(0))?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                found.extend(used.iter().any(|run| runs.contains(run)).then_some(fault));
            }
            Ok(found)
        })
    }

    /// Notes the faults that somebody was told and that are there still, so that they are told
    /// apart from new ones: how many.
    pub(crate) fn note_faults(&self, told: &ChainReport) -> Result<usize, Error> {
        if told.news.is_empty() {
            return Ok(0);
        }
        let told: HashSet<&String> = told.news.iter().collect();
        self.transaction("note faults in", |rows| {
            let there = check(rows)?.news;
            let mut pen = Pen::new(rows)?;
            let mut noted = 0;
            for fault in there.iter().filter(|fault| told.contains(fault)) {
                let added = rows.execute(
                    "INSERT OR IGNORE INTO noted (fault, at) VALUES (?1, ?2)",
                    rusqlite::params![fault, now()],
                )?;
                noted += 1;
                // Two entries may say the same.
                if added == 0 {
                    continue;
                }
                let id = rows.last_insert_rowid();
                let content = note(rows, id)?.expect("just inserted");
                pen.add(What::Note, id, content)?;
            }
            Ok(noted)
        })
    }
}

impl Store {
    /// What was changed of a run's own record after it was sealed, if anything: what it was told,
    /// how it ended, or which executions it used.
    pub fn altered_run(&self, run: &crate::Run) -> Result<Option<String>, Error> {
        let id = run.id.0;
        self.query("check the log in", |rows| {
            if Beginning::of(rows)?.is_older(id) {
                return Ok(None);
            }
            Ok(match () {
                () if !is_sealed(rows, What::Run, id)? => Some(changed("run", id)),
                () if run.ended.is_some() && !is_sealed(rows, What::End, id)? => {
                    Some(changed("the end of run", id))
                }
                () => None,
            })
        })
    }
}

/// Whether a row is what the newest entry about it says.
pub(crate) fn is_sealed(rows: &Connection, what: What, row: i64) -> rusqlite::Result<bool> {
    let now = match what {
        What::Run => run(rows, row)?,
        What::End => end(rows, row)?,
        What::Accept => accept(rows, row)?,
        What::Note => note(rows, row)?,
        What::Execution | What::Tag => unreachable!("these are tested elsewhere"),
    };
    Ok(now.is_some() && now == sealed(rows, what, row)?)
}

/// What the newest entry about a row says.
fn sealed(rows: &Connection, what: What, row: i64) -> rusqlite::Result<Option<Digest>> {
    rows.prepare_cached("SELECT content FROM log WHERE row = ?1 AND what = ?2 ORDER BY id DESC")?
        .query_row(rusqlite::params![row, what.name()], |found| found.get(0))
        .optional()
}

pub(super) fn changed(what: &str, row: i64) -> String {
    format!("{what} {row} was changed after it was recorded")
}

/// What a row says, or why it cannot be read.
type Readable<T> = Result<T, String>;

/// Tells a row that cannot be read from a database that cannot.
fn readable<T>(found: rusqlite::Result<T>) -> rusqlite::Result<Readable<T>> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(
            error @ (FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Something that does not fit. The same words may be said of another change: what is found now
/// tells them apart, so that a note of one does not cover the next.
struct Fault {
    what: String,
    /// Of what was found. None where the words say all of it, as of rows that are gone.
    found: Option<Digest>,
}

impl Fault {
    /// What a note of it says.
    fn noted(&self) -> String {
        match self.found {
            Some(found) => format!("{} ({})", self.what, found.short()),
            None => self.what.clone(),
        }
    }
}

/// What the words say all of.
impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault { what, found: None }
    }
}

/// Tells two states of some rows apart, whatever they hold. What cannot be read has no values here
/// either, and says so in its words.
fn as_found(rows: &Connection, queries: &[&str], of: impl ToSql) -> rusqlite::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    for query in queries {
        let mut query = rows.prepare_cached(query)?;
        let columns = query.column_count();
        let mut found = query.query([&of])?;
        while let Some(row) = found.next()? {
            for column in 0..columns {
                hasher.update(format!("{:?}\n", row.get_ref(column)?).as_bytes());
            }
        }
    }
    Ok(Digest::from(*hasher.finalize().as_bytes()))
}

/// The rows of an execution, all columns.
const EXECUTION: &[&str] = &[
    "SELECT * FROM executions WHERE id = ?1",
    "SELECT * FROM inputs WHERE execution = ?1 ORDER BY port, ordinal",
    "SELECT * FROM outputs WHERE execution = ?1 ORDER BY ordinal",
];

const ACCEPTANCE: &[&str] = &["SELECT * FROM acceptances WHERE id = ?1"];

const NOTE: &[&str] = &["SELECT * FROM noted WHERE id = ?1"];

/// An entry of the log, and the one before.
const ENTRY: &[&str] = &["SELECT * FROM log WHERE id <= ?1 ORDER BY id DESC LIMIT 2"];

/// Those of a run, all columns.
const RUN: &[&str] = &[
    "SELECT * FROM runs WHERE id = ?1",
    "SELECT * FROM uses WHERE run = ?1 ORDER BY instance",
];

#[derive(Default)]
struct Seen {
    executions: HashSet<i64>,
    runs: HashSet<i64>,
    acceptances: HashSet<i64>,
    /// A run may be ended and tagged more than once; only the last word must fit its row.
    ends: BTreeMap<i64, Digest>,
    tags: Vec<(i64, Digest)>,
    notes: HashSet<i64>,
}

pub(crate) fn check(rows: &Connection) -> rusqlite::Result<ChainReport> {
    let mut report = ChainReport::default();
    let mut seen = Seen::default();
    let mut broken: Vec<Fault> = Vec::new();
    entries(rows, &mut report, &mut seen, &mut broken)?;
    for (id, content) in &seen.ends {
        let now = readable(end(rows, *id))?;
        if now != Ok(Some(*content)) {
            broken.push(Fault {
                what: format!("the end of run {id} was changed after it was recorded"),
                found: Some(as_found(rows, RUN, *id)?),
            });
        }
    }
    tags_fit(rows, &seen.tags, &mut broken)?;
    unlogged(rows, &seen, &mut report, &mut broken)?;
    for (id, what) in environment_faults(rows)? {
        let environment = "SELECT * FROM environments WHERE id = ?1";
        let found = Some(as_found(rows, &[environment], id)?);
        broken.push(Fault { what, found });
    }
    let codes = "SELECT digest FROM codes ORDER BY id";
    for code in column::<Digest>(rows, codes, "a row of `codes`", &mut broken)? {
        if let Some(what) = code_fault(rows, &code)? {
            let found = Some(as_found(
                rows,
                &["SELECT * FROM codes WHERE digest = ?1"],
                code,
            )?);
            broken.push(Fault { what, found });
        }
    }
    let texts = "SELECT digest FROM texts ORDER BY digest";
    for digest in column::<Digest>(rows, texts, "a row of `texts`", &mut broken)? {
        let text: String = rows
            .prepare_cached("SELECT text FROM texts WHERE digest = ?1")?
            .query_row([digest], |row| row.get(0))?;
        if Digest::of(text.as_bytes()) != digest {
            let short = digest.short();
            broken.push(Fault {
                what: format!("the pipeline file {short} was changed after it was recorded"),
                found: Some(Digest::of(text.as_bytes())),
            });
        }
    }
    let known: HashSet<String> = rows
        .prepare("SELECT id, fault FROM noted")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .filter(|note| !matches!(note, Ok((id, _)) if !seen.notes.contains(id)))
        .map(|note: rusqlite::Result<(i64, String)>| note.map(|(_, fault)| fault))
        .collect::<rusqlite::Result<_>>()?;
    for fault in broken {
        match known.contains(&fault.noted()) {
            true => report.noted.push(fault.what),
            false => {
                report.news.push(fault.noted());
                report.broken.push(fault.what);
            }
        }
    }
    Ok(report)
}

/// Every entry against the one before and against its row.
fn entries(
    rows: &Connection,
    report: &mut ChainReport,
    seen: &mut Seen,
    broken: &mut Vec<Fault>,
) -> rusqlite::Result<()> {
    let mut environments = Environments::new();
    let mut last_id = 0;
    let mut query = rows.prepare("SELECT id, what, row, content, seal FROM log ORDER BY id")?;
    let mut entries = query.query([])?;
    while let Some(entry) = entries.next()? {
        let (id, what, row): (i64, String, i64) = (entry.get(0)?, entry.get(1)?, entry.get(2)?);
        report.entries += 1;
        if id != last_id + 1 {
            let (from, to) = (last_id + 1, id - 1);
            broken.push(format!("log: entries {from} to {to} are gone").into());
        }
        last_id = id;
        let digests = entry.get(3).and_then(|a| Ok((a, entry.get(4)?)));
        let (content, found): (Digest, Digest) = match readable(digests)? {
            Ok(digests) => digests,
            Err(why) => {
                broken.push(Fault {
                    what: format!("log: entry {id} cannot be read: {why}"),
                    found: Some(as_found(rows, ENTRY, id)?),
                });
                continue;
            }
        };
        if seal(report.head, &what, row, content) != found {
            broken.push(Fault {
                what: format!("log: entry {id} ({what} {row}) does not fit the one before"),
                found: Some(as_found(rows, ENTRY, id)?),
            });
        }
        report.head = Some(found);
        let now = match what.as_str() {
            "run" => {
                seen.runs.insert(row);
                readable(run(rows, row))?
            }
            "execution" => {
                seen.executions.insert(row);
                match readable(one_execution(rows, row, &mut environments))? {
                    Ok(Some(it)) => {
                        if let Some(what) = beside(rows, &it)?.misfit {
                            let found = Some(as_found(rows, EXECUTION, row)?);
                            broken.push(Fault { what, found });
                        }
                        Ok(Some(execution(&it)))
                    }
                    other => other.map(|_| None),
                }
            }
            "end" => {
                seen.ends.insert(row, content);
                continue;
            }
            "tag" => {
                seen.tags.push((row, content));
                continue;
            }
            "accept" => {
                seen.acceptances.insert(row);
                readable(accept(rows, row))?
            }
            "note" => {
                let now = readable(note(rows, row))?;
                if now == Ok(Some(content)) {
                    seen.notes.insert(row);
                }
                now
            }
            _ => Ok(None),
        };
        match now {
            Ok(Some(now)) if now == content => {}
            Ok(Some(now)) => broken.push(Fault {
                what: changed(&what, row),
                found: Some(now),
            }),
            Ok(None) => {
                broken.push(format!("{what} {row} was removed after it was recorded").into());
            }
            Err(why) => {
                let queries = match what.as_str() {
                    "execution" => EXECUTION,
                    "run" => RUN,
                    "accept" => ACCEPTANCE,
                    _ => NOTE,
                };
                broken.push(Fault {
                    what: format!("{what} {row} cannot be read: {why}"),
                    found: Some(as_found(rows, queries, row)?),
                });
            }
        }
    }
    let made = rows
        .query_row(
            "SELECT seq FROM sqlite_sequence WHERE name = 'log'",
            [],
            |row| row.get(0),
        )
        .optional()?
        .unwrap_or(0);
    if made > last_id {
        broken.push(Fault {
            what: format!("log: the last {} entries are gone", made - last_id),
            found: report.head,
        });
    }
    Ok(())
}

/// What stands beside an execution.
struct Beside {
    /// What the newest entry about it says.
    sealed: Option<Digest>,
    /// Columns that repeat what the key says, for queries, must say the same: if not, what is wrong.
    misfit: Option<String>,
}

fn beside(rows: &Connection, it: &Execution) -> rusqlite::Result<Beside> {
    type Repeated = (String, Option<String>, i64, Digest, Option<Digest>);
    let found: rusqlite::Result<Repeated> = rows
        .prepare_cached(
            "SELECT x.kind, x.seed, x.ok, c.digest,
                 (SELECT content FROM log WHERE row = x.id AND what = 'execution'
                  ORDER BY id DESC LIMIT 1)
             FROM executions x JOIN codes c ON c.id = x.code WHERE x.id = ?1",
        )?
        .query_row([it.id], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        });
    let seed = it.key.seed.map(|seed| seed.to_string());
    // Look-ups want exactly 1: what is merely not 0 would hide a result.
    let ok = i64::from(it.failure.is_none());
    let meant = (&it.key.kind, &seed, ok, it.key.code);
    let (sealed, fits) = match readable(found.optional())? {
        Ok(Some((kind, seed, ok, code, sealed))) => (sealed, (&kind, &seed, ok, code) == meant),
        _ => (None, false),
    };
    let misfit = format!(
        "execution {}: its kind, seed, code or success is not what its key and log say",
        it.id
    );
    Ok(Beside {
        sealed,
        misfit: (!fits).then_some(misfit),
    })
}

/// The sources behind a fingerprint must have it.
fn code_fault(rows: &Connection, code: &Digest) -> rusqlite::Result<Option<String>> {
    let files = readable(files_of(rows, code))?;
    let fits = matches!(&files, Ok(Some(files)) if code_digest(files) == *code);
    let short = code.short();
    Ok((!fits).then(|| format!("the list of sources behind code {short} was changed")))
}

/// Machines and commits whose rows do not have their digest, which runs are sealed with.
fn environment_faults(rows: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut faults = Vec::new();
    let mut query = rows.prepare_cached("SELECT id, digest FROM environments ORDER BY id")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let id: i64 = row.get(0)?;
        let digest: Readable<Digest> = readable(row.get(1))?;
        let now = readable(one_environment(rows, id))?;
        if digest.ok() != now.ok().map(|now| environment_digest(&now)) {
            let why = format!(
                "environment {id}, machine and commit of some runs, was changed after it was recorded"
            );
            faults.push((id, why));
        }
    }
    Ok(faults)
}

/// The values of a query with one column; what cannot be read is a fault.
fn column<T: rusqlite::types::FromSql>(
    rows: &Connection,
    query: &str,
    what: &str,
    broken: &mut Vec<Fault>,
) -> rusqlite::Result<Vec<T>> {
    let mut values = Vec::new();
    let mut query = rows.prepare(query)?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        match readable(row.get(0))? {
            Ok(value) => values.push(value),
            Err(why) => broken.push(format!("{what} cannot be read: {why}").into()),
        }
    }
    Ok(values)
}

/// Where the log begins. Stores of an older format have rows from before; in all others the first
/// run is its first entry, and nothing is older.
pub(super) struct Beginning {
    first_run: Option<i64>,
}

impl Beginning {
    pub(super) fn of(rows: &Connection) -> rusqlite::Result<Beginning> {
        let first = "SELECT row FROM log WHERE what = 'run' ORDER BY id LIMIT 1";
        let first_run = rows.query_row(first, [], |row| row.get(0)).optional()?;
        Ok(Beginning { first_run })
    }

    /// Whether a run was recorded before there was a log.
    pub(super) fn is_older(&self, run: i64) -> bool {
        run >= 1 && self.first_run.is_none_or(|first| run < first)
    }
}

pub(super) fn unlogged_execution(id: i64, instance: &str) -> String {
    format!("execution {id} (`{instance}`) is in no entry of the log")
}

/// Tags are where they were put last, and none is gone. The log has digests of names: what a name
/// was given to is found by trying.
fn tags_fit(
    rows: &Connection,
    entries: &[(i64, Digest)],
    broken: &mut Vec<Fault>,
) -> rusqlite::Result<()> {
    let begins = Beginning::of(rows)?;
    let mut open: Vec<bool> = vec![true; entries.len()];
    let mut query = rows.prepare("SELECT name, run FROM tags ORDER BY name")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let (name, run): (String, i64) = (row.get(0)?, row.get(1)?);
        let mut last = None;
        for (entry, (given, content)) in entries.iter().enumerate() {
            if tag(&name, *given) == *content {
                (open[entry], last) = (false, Some(*given));
            }
        }
        let fits = match last {
            Some(last) => last == run,
            None => begins.is_older(run),
        };
        if !fits {
            broken.push(Fault {
                what: format!("the tag `{name}` was changed after it was recorded"),
                found: Some(tag(&name, run)),
            });
        }
    }
    let gone = entries.iter().zip(open).filter(|(_, open)| *open);
    broken.extend(gone.map(|((run, content), _)| Fault {
        what: format!("a tag of run {run} was removed after it was recorded"),
        found: Some(*content),
    }));
    Ok(())
}

/// Rows that somebody put in beside the log. Before its beginning that is as it should be.
fn unlogged(
    rows: &Connection,
    seen: &Seen,
    report: &mut ChainReport,
    broken: &mut Vec<Fault>,
) -> rusqlite::Result<()> {
    let begins = Beginning::of(rows)?;
    let mut query = rows.prepare("SELECT id, instance, run FROM executions ORDER BY id")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let (id, instance, run): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if seen.executions.contains(&id) {
            continue;
        }
        match id >= 1 && begins.is_older(run) {
            true => report.before += 1,
            false => broken.push(Fault {
                what: unlogged_execution(id, &instance),
                found: Some(as_found(rows, EXECUTION, id)?),
            }),
        }
    }
    let mut query = rows.prepare("SELECT id, ended IS NOT NULL FROM runs ORDER BY id")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        let (id, ended): (i64, bool) = (row.get(0)?, row.get(1)?);
        if begins.is_older(id) {
            continue;
        }
        if !seen.runs.contains(&id) {
            broken.push(Fault {
                what: format!("run {id} is in no entry of the log"),
                found: Some(as_found(rows, RUN, id)?),
            });
        } else if ended && !seen.ends.contains_key(&id) {
            broken.push(Fault {
                what: format!("the end of run {id} is in no entry of the log"),
                found: Some(as_found(rows, RUN, id)?),
            });
        }
    }
    // There was no acceptance before there was a log.
    let acceptances = "SELECT id FROM acceptances ORDER BY id";
    for id in column::<i64>(rows, acceptances, "an acceptance", broken)? {
        if !seen.acceptances.contains(&id) {
            broken.push(Fault {
                what: format!("acceptance {id} is in no entry of the log"),
                found: Some(as_found(rows, ACCEPTANCE, id)?),
            });
        }
    }
    Ok(())
}
