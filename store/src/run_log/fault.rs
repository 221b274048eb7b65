//! Faults of the log in words, and what distinguishes two of them.

use rusqlite::{Connection, OptionalExtension, ToSql};

use crate::digest::Digest;

pub(super) fn changed(what: &str, row: i64) -> String {
    format!("{what} {row} was changed after it was recorded")
}

/// What a row says, or why it cannot be read.
pub(super) type Readable<T> = Result<T, String>;

/// Tells a row that cannot be read from a database that cannot.
pub(super) fn readable<T>(found: rusqlite::Result<T>) -> rusqlite::Result<Readable<T>> {
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

/// Something that does not fit. The same words may describe another change: what is found now
/// distinguishes them, so that a note of one does not cover the next.
pub(super) struct Fault {
    pub(super) what: String,
    /// Of what was found. None where the words say all of it, as of rows that are gone.
    pub(super) found: Option<Digest>,
}

impl Fault {
    /// What a note of it says.
    pub(super) fn noted(&self) -> String {
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
pub(super) fn as_found(
    rows: &Connection,
    queries: &[&str],
    of: impl ToSql,
) -> rusqlite::Result<Digest> {
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
pub(super) const EXECUTION: &[&str] = &[
    "SELECT * FROM executions WHERE id = ?1",
    "SELECT * FROM inputs WHERE execution = ?1 ORDER BY port, ordinal",
    "SELECT * FROM outputs WHERE execution = ?1 ORDER BY ordinal",
];

pub(super) const ACCEPTANCE: &[&str] = &["SELECT * FROM acceptances WHERE id = ?1"];

pub(super) const NOTE: &[&str] = &["SELECT * FROM noted WHERE id = ?1"];

/// An entry of the log, and the one before.
pub(super) const ENTRY: &[&str] = &["SELECT * FROM log WHERE id <= ?1 ORDER BY id DESC LIMIT 2"];

/// Those of a run, all columns.
pub(super) const RUN: &[&str] = &[
    "SELECT * FROM runs WHERE id = ?1",
    "SELECT * FROM uses WHERE run = ?1 ORDER BY instance",
];

/// The values of a query with one column; what cannot be read is a fault.
pub(super) fn column<T: rusqlite::types::FromSql>(
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
    format!("execution {id} (`{instance}`) is not in the log")
}
