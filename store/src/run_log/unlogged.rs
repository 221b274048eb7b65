//! Tags and rows that are not in the log as they should be.

use rusqlite::Connection;

use super::contents::tag;
use super::entries::SeenRows;
use super::fault::{
    ACCEPTANCE, Beginning, EXECUTION, Fault, RUN, as_found, column, unlogged_execution,
};
use super::report::LogReport;
use crate::digest::Digest;

/// Tags are where they were put last, and none is gone. The log has digests of names: what a name
/// was given to is found by trying.
pub(super) fn tags_fit(
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
pub(super) fn unlogged(
    rows: &Connection,
    seen: &SeenRows,
    report: &mut LogReport,
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
                what: format!("run {id} is not in the log"),
                found: Some(as_found(rows, RUN, id)?),
            });
        } else if ended && !seen.ends.contains_key(&id) {
            broken.push(Fault {
                what: format!("the end of run {id} is not in the log"),
                found: Some(as_found(rows, RUN, id)?),
            });
        }
    }
    // There was no acceptance before there was a log.
    let acceptances = "SELECT id FROM acceptances ORDER BY id";
    for id in column::<i64>(rows, acceptances, "an acceptance", broken)? {
        if !seen.acceptances.contains(&id) {
            broken.push(Fault {
                what: format!("acceptance {id} is not in the log"),
                found: Some(as_found(rows, ACCEPTANCE, id)?),
            });
        }
    }
    Ok(())
}
