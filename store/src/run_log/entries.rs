//! Every entry of the log against the one before, and against the row that it is about.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::contents::{accept, execution, note, run};
use super::entry::seal;
use super::fault::{
    ACCEPTANCE, ENTRY, EXECUTION, Fault, NOTE, RUN, Readable, as_found, changed, readable,
};
use super::related_rows::beside;
use super::report::LogReport;
use crate::digest::Digest;
use crate::records::rows::{Environments, one_execution};

/// The rows that entries are about.
#[derive(Default)]
pub(super) struct SeenRows {
    pub(super) executions: HashSet<i64>,
    pub(super) runs: HashSet<i64>,
    pub(super) acceptances: HashSet<i64>,
    /// A run may be ended and tagged more than once; only the last word must fit its row.
    pub(super) ends: BTreeMap<i64, Digest>,
    pub(super) tags: Vec<(i64, Digest)>,
    pub(super) notes: HashSet<i64>,
}

/// Every entry against the one before and against its row.
pub(super) fn entries(
    rows: &Connection,
    report: &mut LogReport,
    seen: &mut SeenRows,
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
            broken.push(format!("log: entries {from} to {to} are missing").into());
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
                what: format!("log: entry {id} ({what} {row}) does not match the previous one"),
                found: Some(as_found(rows, ENTRY, id)?),
            });
        }
        report.head = Some(found);
        let Some(now) = now(rows, seen, broken, &mut environments, (&what, row, content))? else {
            continue;
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
            what: match made - last_id {
                1 => "log: the last entry is missing".to_owned(),
                n => format!("log: the last {n} entries are missing"),
            },
            found: report.head,
        });
    }
    Ok(())
}

/// What the row of an entry says now, if it must be what this entry says: a later one may decide.
fn now(
    rows: &Connection,
    seen: &mut SeenRows,
    broken: &mut Vec<Fault>,
    environments: &mut Environments,
    (what, row, content): (&str, i64, Digest),
) -> rusqlite::Result<Option<Readable<Option<Digest>>>> {
    Ok(Some(match what {
        "run" => {
            seen.runs.insert(row);
            readable(run(rows, row))?
        }
        "execution" => {
            seen.executions.insert(row);
            match readable(one_execution(rows, row, environments))? {
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
            return Ok(None);
        }
        "tag" => {
            seen.tags.push((row, content));
            return Ok(None);
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
    }))
}
