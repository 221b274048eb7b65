//! An entry of the run log, and how entries are added.

use rusqlite::{OptionalExtension, Transaction, params};

use super::contents::digest;
use crate::digest::Digest;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Run,
    Execution,
    End,
    Tag,
    Accept,
    /// Somebody has seen a fault.
    Note,
}

impl EntryKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            EntryKind::Run => "run",
            EntryKind::Execution => "execution",
            EntryKind::End => "end",
            EntryKind::Tag => "tag",
            EntryKind::Accept => "accept",
            EntryKind::Note => "note",
        }
    }
}

/// Adds entries to the log, and knows the last seal meanwhile.
pub(crate) struct LogWriter<'a> {
    rows: &'a Transaction<'a>,
    last: Option<Digest>,
}

impl<'a> LogWriter<'a> {
    pub(crate) fn new(rows: &'a Transaction<'a>) -> rusqlite::Result<LogWriter<'a>> {
        let last = rows
            .prepare_cached("SELECT seal FROM log ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        Ok(LogWriter { rows, last })
    }

    pub(crate) fn add(
        &mut self,
        what: EntryKind,
        row: i64,
        content: Digest,
    ) -> rusqlite::Result<()> {
        let seal = seal(self.last, what.name(), row, content);
        self.rows
            .prepare_cached("INSERT INTO log (what, row, content, seal) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![what.name(), row, content, seal])?;
        self.last = Some(seal);
        Ok(())
    }
}

pub(super) fn seal(before: Option<Digest>, what: &str, row: i64, content: Digest) -> Digest {
    digest(&("log/1", before, what, row, content))
}
