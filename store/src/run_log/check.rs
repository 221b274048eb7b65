//! Tests the log: every seal, every entry against the row that it is about, and every row
//! against the entries. A row that cannot be read is a fault like others, and ends nothing.

use std::collections::HashSet;

use rusqlite::Connection;

use super::contents::end;
use super::entries::{SeenRows, entries};
use super::fault::{Fault, RUN, as_found, column, readable};
use super::related_rows::{code_fault, environment_faults};
use super::report::LogReport;
use super::unlogged::{tags_fit, unlogged};
use crate::digest::Digest;

/// The whole log, and every row that it should have an entry about.
pub(crate) fn check(rows: &Connection) -> rusqlite::Result<LogReport> {
    let mut report = LogReport::default();
    let mut seen = SeenRows::default();
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
    codes_and_texts_fit(rows, &mut broken)?;
    sort_out(rows, broken, &seen, &mut report)?;
    Ok(report)
}

/// Lists of sources and pipeline files have the digests that they are stored under.
fn codes_and_texts_fit(rows: &Connection, broken: &mut Vec<Fault>) -> rusqlite::Result<()> {
    let codes = "SELECT digest FROM codes ORDER BY id";
    for code in column::<Digest>(rows, codes, "a row of `codes`", broken)? {
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
    for digest in column::<Digest>(rows, texts, "a row of `texts`", broken)? {
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
    Ok(())
}

/// Tells faults that somebody has noted from new ones.
fn sort_out(
    rows: &Connection,
    broken: Vec<Fault>,
    seen: &SeenRows,
    report: &mut LogReport,
) -> rusqlite::Result<()> {
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
    Ok(())
}
