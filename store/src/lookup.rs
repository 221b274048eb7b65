//! The action cache: from a key to the newest result that was made for it.
//! Knows nothing of whether the result's objects are still on the disk.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::accept::accepted;
use crate::chain;
use crate::error::At;
use crate::history::work;
use crate::open::lock;
use crate::provenance::duration;
use crate::{Digest, Error, Found, Output, Store, Work};

/// While this lives, look-ups see the store as it was when the first of them was made.
#[derive(Debug)]
pub struct Snapshot<'a>(&'a Store);

impl Store {
    /// Makes the look-ups that follow one transaction, which spares each of them its locks.
    /// Short-lived: what other processes store meanwhile is not seen.
    pub fn snapshot(&self) -> Snapshot<'_> {
        // If it cannot begin, or has begun, each look-up is on its own or in that one: slower, not wrong.
        let _ = lock(&self.reader).execute_batch("BEGIN");
        Snapshot(self)
    }

    /// The newest successful execution of this key, and whether its record is as it was sealed.
    /// Whether its objects are still there is for the caller to see.
    pub fn lookup(&self, key: &Digest) -> Result<Option<Found>, Error> {
        let reader = lock(&self.reader);
        newest(&reader, key).at("look up a key in", &self.database())
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let _ = lock(&self.0.reader).execute_batch("COMMIT");
    }
}

/// What was made for a key or, failing that, what somebody said may stand for it.
fn newest(rows: &Connection, key: &Digest) -> rusqlite::Result<Option<Found>> {
    let made: Option<i64> = rows
        .prepare_cached("SELECT max(id) FROM executions WHERE key = ?1 AND ok = 1")?
        .query_row([key], |row| row.get(0))?;
    // An acceptance lets other code stand in, and nothing else: whoever wrote the row.
    let Some(execution) = made.map_or_else(|| accepted(rows, key), |id| Ok(Some(id)))? else {
        return Ok(None);
    };
    let altered = chain::altered(rows, execution)?;
    match find(rows, execution) {
        Ok(found) => Ok(found.map(|found| Found { altered, ..found })),
        // A row that was changed may not even be readable.
        Err(_) if altered.is_some() => Ok(Some(Found {
            execution,
            outputs: Vec::new(),
            wall: Duration::ZERO,
            work: Work::new(),
            altered,
        })),
        Err(error) => Err(error),
    }
}

fn find(rows: &Connection, execution: i64) -> rusqlite::Result<Option<Found>> {
    let mut query = rows.prepare_cached(
        "SELECT e.id, e.wall, o.name, o.digest, o.row_count, o.bytes, o.columns, e.work
         FROM executions e LEFT JOIN outputs o ON o.execution = e.id
         WHERE e.id = ?1 ORDER BY o.ordinal",
    )?;
    let mut answers = query.query([execution])?;
    let mut found = None;
    while let Some(row) = answers.next()? {
        let found = match &mut found {
            Some(found) => found,
            none => none.insert(Found {
                execution: row.get(0)?,
                outputs: Vec::new(),
                wall: duration(row.get(1)?),
                work: work(row, 7)?,
                altered: None,
            }),
        };
        if row.get_ref(2)? != ValueRef::Null {
            found.outputs.push(Output {
                name: row.get(2)?,
                digest: row.get(3)?,
                rows: row.get(4)?,
                bytes: row.get(5)?,
                schema: row.get(6)?,
            });
        }
    }
    Ok(found)
}
