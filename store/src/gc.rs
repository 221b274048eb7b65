//! Removes objects that no kept run reaches. History is never removed: an old run still says
//! what it made, and running its stages again recomputes it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::Connection;
use serde::Serialize;

use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::listing::{ObjectFile, list};
use crate::files::{disk, scratch};
use crate::objects::CHECKPOINTS;
use crate::place::Place;
use crate::store::connections;

/// What gc kept and removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// How many objects stay.
    pub kept: u64,
    /// Their size.
    pub kept_bytes: u64,
    /// What goes, with sizes, in the order of the digests.
    pub removed: Vec<(Digest, u64)>,
    /// The size of all that goes.
    pub removed_bytes: u64,
    /// How many checkpoints of unfinished executions go.
    pub checkpoints: u64,
    /// Their size.
    pub checkpoint_bytes: u64,
    /// Temporary folders that could not be removed, each with the reason.
    pub left: Vec<String>,
}

/// Removes the objects that neither the last `keep_runs` runs nor any tagged run reach.
/// A run reaches what its executions made and read, whether they ran then or were found.
/// Needs the store for itself: while a run or another command uses it, the answer is `Busy`.
/// A dry run removes nothing and needs no such right.
pub fn gc(root: &Path, keep_runs: usize, dry_run: bool) -> Result<GcReport, Error> {
    let place = Place::of(root)?;
    if !place.database().exists() {
        return Err(Error::NoStore {
            root: root.to_owned(),
        });
    }
    // Looking takes no such right where several may look at once.
    let looks = dry_run && place.network().is_none();
    let _alone = if looks { None } else { Some(place.alone()?) };
    let (_, reader) = connections(&place)?;
    let kept = reached(&reader, keep_runs).at("read the runs in", &place.database())?;
    let mut report = GcReport::default();
    let mut folders = HashSet::new();
    for entry in list(&root.join("objects"))? {
        // Files that are not objects are somebody's: fsck names them.
        let ObjectFile::Object { digest, path } = entry else {
            continue;
        };
        let bytes = fs::metadata(&path).at("look at", &path)?.len();
        if kept.contains(&digest) {
            report.kept += 1;
            report.kept_bytes += bytes;
            continue;
        }
        if !dry_run {
            disk::remove_file(&path).at("remove", &path)?;
            folders.extend(path.parent().map(Path::to_owned));
        }
        report.removed.push((digest, bytes));
        report.removed_bytes += bytes;
    }
    (report.checkpoints, report.checkpoint_bytes) = checkpoints(root, dry_run)?;
    if !dry_run {
        report.left = scratch::sweep(&root.join("tmp"));
        sync(&folders)?;
    }
    report.removed.sort();
    Ok(report)
}

/// Removes what unfinished executions have saved: how many, how many bytes. Nobody is running, so nobody is at it.
fn checkpoints(root: &Path, dry_run: bool) -> Result<(u64, u64), Error> {
    let folder = root.join(CHECKPOINTS);
    if !folder.exists() {
        return Ok((0, 0));
    }
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(&folder).at("list", &folder)? {
        let path = entry.at("list", &folder)?.path();
        files += 1;
        bytes += fs::metadata(&path).at("look at", &path)?.len();
        if !dry_run {
            disk::remove_file(&path).at("remove", &path)?;
        }
    }
    Ok((files, bytes))
}

/// Removes damaged objects that were set aside longer ago than this: how many, how many bytes.
/// They are evidence of a bad disk, so nobody does this unasked.
pub fn empty_damaged(root: &Path, age: Duration, dry_run: bool) -> Result<(u64, u64), Error> {
    let folder = root.join("damaged");
    let _alone = match dry_run {
        true => None,
        false => Some(Place::of(root)?.alone()?),
    };
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(&folder).at("list", &folder)? {
        let path = entry.at("list", &folder)?.path();
        let found = fs::symlink_metadata(&path).at("look at", &path)?;
        // Moving a file leaves its time of writing as it was, but not its time of change.
        let changed = UNIX_EPOCH + Duration::from_secs(found.ctime().max(0).unsigned_abs());
        let old = changed.elapsed().is_ok_and(|since| since >= age);
        if !found.is_file() || !old {
            continue;
        }
        if !dry_run {
            disk::remove_file(&path).at("remove", &path)?;
        }
        files += 1;
        bytes += found.len();
    }
    Ok((files, bytes))
}

fn reached(rows: &Connection, keep_runs: usize) -> rusqlite::Result<HashSet<Digest>> {
    let keep_runs = i64::try_from(keep_runs).unwrap_or(i64::MAX);
    rows.prepare(
        "WITH kept_runs AS (
             SELECT id FROM (SELECT id FROM runs ORDER BY id DESC LIMIT ?1)
             UNION SELECT run FROM tags
         ), kept AS (
             SELECT execution FROM uses WHERE run IN kept_runs AND execution IS NOT NULL
             -- A run that died may have recorded executions without their uses.
             UNION SELECT id FROM executions WHERE run IN kept_runs
         )
         SELECT digest FROM outputs WHERE execution IN kept
         UNION SELECT digest FROM inputs WHERE execution IN kept",
    )?
    .query_map([keep_runs], |row| row.get(0))?
    .collect()
}

fn sync(folders: &HashSet<PathBuf>) -> Result<(), Error> {
    for folder in folders {
        disk::sync(folder).at("write to the disk", folder)?;
    }
    Ok(())
}
