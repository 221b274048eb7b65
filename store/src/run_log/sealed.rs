//! What the log has sealed of a row, and whether the row is still that.

use rusqlite::{Connection, OptionalExtension};

use super::contents::{accept, end, note, run};
use super::entry::EntryKind;
use crate::digest::Digest;

/// Whether a row is what the newest entry about it says.
pub(crate) fn is_sealed(rows: &Connection, what: EntryKind, row: i64) -> rusqlite::Result<bool> {
    let now = match what {
        EntryKind::Run => run(rows, row)?,
        EntryKind::End => end(rows, row)?,
        EntryKind::Accept => accept(rows, row)?,
        EntryKind::Note => note(rows, row)?,
        EntryKind::Execution | EntryKind::Tag => unreachable!("these are tested elsewhere"),
    };
    Ok(now.is_some() && now == sealed(rows, what, row)?)
}

/// What the newest entry about a row says.
pub(super) fn sealed(
    rows: &Connection,
    what: EntryKind,
    row: i64,
) -> rusqlite::Result<Option<Digest>> {
    rows.prepare_cached("SELECT content FROM log WHERE row = ?1 AND what = ?2 ORDER BY id DESC")?
        .query_row(rusqlite::params![row, what.name()], |found| found.get(0))
        .optional()
}
