//! A person accepts that a change of code does not change a result, so that the old one stays in use.
//! Recorded with who, when and why; never forgotten, and shown by every audit.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::key::StageKey;
use crate::records::columns::Json;
use crate::records::time::now;
use crate::run_log::{EntryKind, LogWriter, contents, is_sealed};
use crate::store::Store;

/// A change of code that somebody has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The stage instance.
    pub instance: String,
    /// The execution whose result is used.
    pub execution: i64,
    /// The code that made it.
    pub old_code: Digest,
    /// The code that would make it now.
    pub new_code: Digest,
    /// The key that it is used for.
    pub new_key: Digest,
    /// Who accepted it.
    pub who: String,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// Why.
    pub reason: String,
}

impl Store {
    /// Lets an execution stand for a key that differs from its own in the code alone.
    pub fn accept(
        &self,
        instance: &str,
        execution: i64,
        old_code: Digest,
        key: &StageKey,
        who: &str,
        reason: &str,
    ) -> Result<(), Error> {
        self.transaction("record an acceptance in", |rows| {
            rows.execute(
                "INSERT INTO acceptances
                     (instance, execution, old_code, new_code, new_key, who, at, reason)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    instance,
                    execution,
                    old_code,
                    key.code,
                    key.digest(),
                    who,
                    now(),
                    reason
                ],
            )?;
            let id = rows.last_insert_rowid();
            let content = contents::accept(rows, id)?.expect("just inserted");
            LogWriter::new(rows)?.add(EntryKind::Accept, id, content)
        })
    }

    /// Everything that was accepted, oldest first.
    pub fn acceptances(&self) -> Result<Vec<Acceptance>, Error> {
        self.query("read the acceptances in", |rows| {
            rows.prepare_cached(
                "SELECT instance, execution, old_code, new_code, new_key, who, at, reason
                 FROM acceptances ORDER BY id",
            )?
            .query_map([], acceptance)?
            .collect()
        })
    }

    /// The newest successful execution whose key is this one but for the code.
    pub fn same_but_code(
        &self,
        instance: &str,
        key: &StageKey,
    ) -> Result<Option<(i64, Digest)>, Error> {
        self.query("read the keys in", |rows| {
            let mut query = rows.prepare_cached(
                "SELECT id, key_json FROM executions
                 WHERE instance = ?1 AND kind = ?2 AND ok = 1 ORDER BY id DESC LIMIT 200",
            )?;
            let mut found = query.query([instance, &key.kind])?;
            while let Some(row) = found.next()? {
                let Json(old): Json<StageKey> = row.get(1)?;
                let code = old.code;
                let same = StageKey {
                    code: key.code,
                    ..old
                };
                if same == *key {
                    return Ok(Some((row.get(0)?, code)));
                }
            }
            Ok(None)
        })
    }
}

fn acceptance(row: &Row<'_>) -> rusqlite::Result<Acceptance> {
    Ok(Acceptance {
        instance: row.get(0)?,
        execution: row.get(1)?,
        old_code: row.get(2)?,
        new_code: row.get(3)?,
        new_key: row.get(4)?,
        who: row.get(5)?,
        at: row.get(6)?,
        reason: row.get(7)?,
    })
}

/// The execution that stands for a key by acceptance: one whose own key, with the accepted code
/// in place of its own, is that key. A row that says more than that is not believed.
pub(crate) fn accepted(rows: &Connection, key: &Digest) -> rusqlite::Result<Option<i64>> {
    let mut query = rows.prepare_cached(
        "SELECT a.execution, a.new_code, x.key_json, a.id FROM acceptances a
         JOIN executions x ON x.id = a.execution AND x.ok = 1
         WHERE a.new_key = ?1 ORDER BY a.id DESC",
    )?;
    let mut found = query.query([key])?;
    while let Some(row) = found.next()? {
        let Json(old): Json<StageKey> = row.get(2)?;
        let code = row.get(1)?;
        // Nor is one that the log has not, or not so.
        if (StageKey { code, ..old }).digest() == *key
            && is_sealed(rows, EntryKind::Accept, row.get(3)?)?
        {
            return row.get(0).map(Some);
        }
    }
    Ok(None)
}
