//! The action cache: from a key to the newest result that was made for it.
//! Knows nothing of whether the result's objects are still on the disk.

use std::time::Duration;

use rusqlite::Connection;

use crate::acceptance::accepted;
use crate::digest::Digest;
use crate::error::{At, Error};
use crate::mutex::lock;
use crate::records::{Found, Work};
use crate::run_log;
use crate::store::Store;

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

/// The result of a key or, failing that, one that was accepted in its place.
fn newest(rows: &Connection, key: &Digest) -> rusqlite::Result<Option<Found>> {
    match run_log::newest(rows, key) {
        Ok(None) => {}
        Err(error) => {
            return unreadable(rows, key)
                .and_then(|found| found.ok_or(error))
                .map(Some);
        }
        made => return made,
    }
    // An acceptance lets other code stand in, and nothing else: whoever wrote the row.
    match accepted(rows, key)? {
        Some(execution) => run_log::one(rows, execution),
        None => Ok(None),
    }
}

/// A row that was changed may not even be readable: then that is what is found.
fn unreadable(rows: &Connection, key: &Digest) -> rusqlite::Result<Option<Found>> {
    let made: Option<i64> = rows
        .prepare_cached("SELECT max(id) FROM executions WHERE key = ?1 AND ok = 1")?
        .query_row([key], |row| row.get(0))?;
    let Some(execution) = made else {
        return Ok(None);
    };
    let altered = run_log::altered(rows, execution)?;
    Ok(altered.map(|why| Found {
        execution,
        outputs: Vec::new(),
        wall: Duration::ZERO,
        work: Work::new(),
        taken: false,
        altered: Some(why),
    }))
}
