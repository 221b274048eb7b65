//! Finds the stored key that a missed one is best compared with.
//! Does not say how they differ: that is for callers to explain.

use std::collections::BTreeMap;

use rusqlite::Row;

use crate::error::Error;
use crate::key::{CodeFiles, StageKey};
use crate::records::columns::Json;
use crate::store::Store;

impl Store {
    /// The stored key to compare a missed one with, and the sources behind its code: among the
    /// newest successes of the same instance, or else of the kind, the one that differs in the
    /// fewest fields.
    pub fn nearest(
        &self,
        kind: &str,
        instance: &str,
        key: &StageKey,
    ) -> Result<Option<(StageKey, CodeFiles)>, Error> {
        if let Some(found) = self.nearest_of_instance(kind, instance, key)? {
            return Ok(Some(found));
        }
        self.query("read the keys in", |rows| {
            let mut same_kind = rows.prepare_cached(
                "SELECT x.key_json, c.files FROM executions x JOIN codes c ON c.id = x.code
                 WHERE x.kind = ?1 AND x.ok = 1 ORDER BY x.id DESC LIMIT 200",
            )?;
            let candidates: Vec<_> = same_kind
                .query_map([kind], stored_key)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(fewest(key, candidates))
        })
    }

    /// The same among successes of this instance alone: nothing if it never was executed.
    pub fn nearest_of_instance(
        &self,
        kind: &str,
        instance: &str,
        key: &StageKey,
    ) -> Result<Option<(StageKey, CodeFiles)>, Error> {
        self.query("read the keys in", |rows| {
            let mut same_instance = rows.prepare_cached(
                "SELECT x.key_json, c.files FROM executions x JOIN codes c ON c.id = x.code
                 WHERE x.instance = ?1 AND x.kind = ?2 AND x.ok = 1 ORDER BY x.id DESC LIMIT 50",
            )?;
            let found: Vec<_> = same_instance
                .query_map([instance, kind], stored_key)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(fewest(key, found))
        })
    }
}

type Stored = (StageKey, CodeFiles);

/// The one that differs in the fewest fields; the first of equals is the newest.
fn fewest(key: &StageKey, candidates: Vec<Stored>) -> Option<Stored> {
    candidates
        .into_iter()
        .min_by_key(|(other, _)| differences(key, other))
}

fn stored_key(row: &Row<'_>) -> rusqlite::Result<(StageKey, CodeFiles)> {
    let (Json(key), Json(files)) = (row.get(0)?, row.get(1)?);
    Ok((key, files))
}

/// In how many fields two keys differ; each parameter, file and input is a field.
fn differences(a: &StageKey, b: &StageKey) -> usize {
    fn entries<V: PartialEq>(a: &BTreeMap<String, V>, b: &BTreeMap<String, V>) -> usize {
        let changed = a.iter().filter(|(name, value)| b.get(*name) != Some(value));
        changed.count() + b.keys().filter(|name| !a.contains_key(*name)).count()
    }
    usize::from(a.record != b.record)
        + usize::from(a.code != b.code)
        + usize::from(a.seed != b.seed)
        + entries(&a.params, &b.params)
        + entries(&a.files, &b.files)
        + entries(&a.installed.programs, &b.installed.programs)
        + entries(&a.installed.packages, &b.installed.packages)
        + entries(&a.inputs, &b.inputs)
}
