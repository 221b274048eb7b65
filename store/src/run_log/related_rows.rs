//! Rows that belong to an execution or a run and have no separate entry: repeated columns, lists of sources,
//! machines. Each is held to the digest that is sealed.

use rusqlite::{Connection, OptionalExtension};

use super::fault::{Readable, readable};
use crate::digest::Digest;
use crate::key::code_digest;
use crate::records::Execution;
use crate::records::rows::{environment_digest, files_of, one_environment};

/// What stands beside an execution.
pub(super) struct Beside {
    /// What the newest entry about it says.
    pub(super) sealed: Option<Digest>,
    /// Columns that repeat what the key says, for queries, must say the same: if not, what is wrong.
    pub(super) misfit: Option<String>,
}

pub(super) fn beside(rows: &Connection, it: &Execution) -> rusqlite::Result<Beside> {
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
pub(super) fn code_fault(rows: &Connection, code: &Digest) -> rusqlite::Result<Option<String>> {
    let files = readable(files_of(rows, code))?;
    let fits = matches!(&files, Ok(Some(files)) if code_digest(files) == *code);
    let short = code.short();
    Ok((!fits).then(|| format!("the list of sources behind code {short} was changed")))
}

/// Machines and commits whose rows do not have their digest, which runs are sealed with.
pub(super) fn environment_faults(rows: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
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
