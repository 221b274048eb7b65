//! Checks the store: every object against its name, every row against the objects.
//! Changes nothing.
//!
//! Others may be writing meanwhile. The rows are read as they were at one moment, and the objects
//! are listed after it: an object has its name before a row names it, so that whatever those rows
//! name is there. What is being made has no row yet, and its file is elsewhere.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rusqlite::Connection;
use serde::Serialize;

use crate::database::migrations;
use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::listing::{ObjectFile, list};
use crate::mutex::lock;
use crate::records::{Output, RunId};
use crate::run_log::{self, LogReport};
use crate::store::Store;

/// What the check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FsckReport {
    /// How many objects were read.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// Objects whose bytes are not what their name says, or that cannot be read.
    pub damaged: Vec<Problem>,
    /// Files in the objects' folder that are not objects, or not in their place.
    pub foreign: Vec<PathBuf>,
    /// Outputs of successful executions whose objects are not there. After gc that is as it should be.
    pub missing: Vec<LostOutput>,
    /// What SQLite says is wrong with the database.
    pub database: Vec<String>,
    /// How the run log is found.
    pub log: LogReport,
    /// Whether another process is making something right now.
    pub in_use: bool,
}

impl FsckReport {
    /// Whether nothing is wrong. Missing objects are not a fault: they are made again when needed.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty()
            && self.foreign.is_empty()
            && self.database.is_empty()
            && self.log.broken.is_empty()
    }
}

/// A damaged object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The digest in its name.
    pub digest: Digest,
    /// What is wrong with it.
    pub why: String,
}

/// An output whose object is not in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostOutput {
    /// The digest of the object.
    pub digest: Digest,
    /// The run that made it.
    pub run: RunId,
    /// The stage instance that made it.
    pub instance: String,
    /// Which of its outputs it is.
    pub output: String,
    /// Whether it was damaged and is set aside, not removed by gc or lost.
    pub aside: bool,
    /// Whether the result was taken from a remote, where objects that nobody has read are left.
    pub taken: bool,
}

impl Store {
    /// Reads every object and compares it with its name, on all threads of the current pool.
    /// `progress` is called with how many objects are done, and of how many; it is called from any thread.
    pub fn fsck(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<FsckReport, Error> {
        let mut report = FsckReport::default();
        let made = self.check_rows(&mut report)?;
        let mut objects = Vec::new();
        for entry in list(&self.objects())? {
            match entry {
                ObjectFile::Object { digest, path } => objects.push((digest, path)),
                ObjectFile::Foreign(path) => report.foreign.push(path),
            }
        }
        let (total, done) = (objects.len() as u64, AtomicU64::new(0));
        let checked: Vec<_> = objects
            .par_iter()
            .map(|(digest, path)| {
                let checked = check(digest, path);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                checked
            })
            .collect();
        let mut present: HashSet<Digest> = HashSet::new();
        for ((digest, path), checked) in objects.iter().zip(checked) {
            match checked {
                Ok(bytes) => report.bytes += bytes,
                // Somebody has met the damage meanwhile, and set it aside.
                Err(_) if !path.exists() => continue,
                Err(why) => report.damaged.push(Problem {
                    path: path.clone(),
                    digest: *digest,
                    why,
                }),
            }
            report.objects += 1;
            present.insert(*digest);
        }
        report.missing = made;
        report
            .missing
            .retain(|lost| !present.contains(&lost.digest));
        for lost in &mut report.missing {
            lost.aside = self.aside(&lost.digest).is_some();
        }
        report.in_use = self.leases_are_held()?;
        Ok(report)
    }

    /// What is wrong with the database, and all outputs that it names; all of one moment.
    fn check_rows(&self, report: &mut FsckReport) -> Result<Vec<LostOutput>, Error> {
        let _one_moment = self.snapshot();
        self.query("check", |rows| {
            report.database = integrity(rows)?;
            // A file that is broken says nothing of its log.
            if report.database.is_empty() {
                report.database = orphans(rows)?;
                report.database.extend(migrations::misfits(rows)?);
                report.log = run_log::check(rows)?;
            }
            outputs(rows)
        })
    }
}

impl Store {
    /// Moves the damaged objects of a report aside, so that the next run recomputes them, and
    /// forgets rows that point at rows that are not there. A good object is never touched: each
    /// is checked once more before it is moved. A broken log stays as it is, because it is
    /// evidence: its faults are noted in it, so that the next fault is news.
    pub fn repair(&self, report: &FsckReport) -> Result<Repaired, Error> {
        let damaged = report.damaged.iter();
        let aside = damaged
            .filter(|found| check(&found.digest, &found.path).is_err() && found.path.exists())
            .map(|found| self.set_aside(&found.digest, &found.path))
            .collect::<Result<_, _>>()?;
        let forgotten = match report.database.is_empty() {
            true => 0,
            false => self.transaction("forget rows in", |rows| {
                let mut forgotten = 0;
                for orphans in ORPHANS {
                    forgotten += rows.execute(orphans, [])?;
                }
                Ok(forgotten)
            })?,
        };
        let database = integrity(&lock(&self.reader)).at("check", &self.database())?;
        let noted = match database.is_empty() {
            true => self.note_faults(&report.log)?,
            false => 0,
        };
        Ok(Repaired {
            aside,
            forgotten,
            noted,
        })
    }
}

/// How one object is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspected {
    /// Its bytes have its digest; how many they are.
    Whole(u64),
    /// They have not, or cannot be read: what is wrong.
    Damaged(String),
    /// It is not in the store.
    Missing,
}

impl Store {
    /// The state of an output by its size alone, which reveals most damage. Its bytes are checked
    /// when they are read.
    pub fn inspect_size(&self, output: &Output) -> Inspected {
        if self.has_pending(&output.digest) {
            return Inspected::Whole(output.bytes);
        }
        match fs::metadata(self.object_path(&output.digest)) {
            Ok(found) if found.len() == output.bytes => Inspected::Whole(found.len()),
            Ok(found) => Inspected::Damaged(format!(
                "it has {} bytes instead of {}",
                found.len(),
                output.bytes
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.gone(&output.digest),
            Err(error) => Inspected::Damaged(format!("it cannot be read: {error}")),
        }
    }

    /// How an object is found that is not in its place.
    fn gone(&self, digest: &Digest) -> Inspected {
        match self.aside(digest) {
            Some(to) => Inspected::Damaged(format!("it was set aside in `{}`", to.display())),
            None => Inspected::Missing,
        }
    }

    /// Hashes one object again. Changes nothing.
    pub fn inspect(&self, digest: &Digest) -> Inspected {
        let path = self.object_path(digest);
        match check(digest, &path) {
            Ok(bytes) => Inspected::Whole(bytes),
            Err(_) if !path.exists() => self.gone(digest),
            Err(why) => Inspected::Damaged(why),
        }
    }
}

/// What was repaired.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Repaired {
    /// Where damaged objects are now.
    pub aside: Vec<PathBuf>,
    /// How many rows were forgotten.
    pub forgotten: usize,
    /// How many faults of the log were noted.
    pub noted: usize,
}

/// What forgets rows that name rows that are not there.
const ORPHANS: &[&str] = &[
    "DELETE FROM tags WHERE run NOT IN (SELECT id FROM runs)",
    "DELETE FROM acceptances WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM uses WHERE run NOT IN (SELECT id FROM runs)",
    "UPDATE uses SET execution = NULL WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM inputs WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM outputs WHERE execution NOT IN (SELECT id FROM executions)",
];

/// The object's size, or what is wrong with it.
fn check(digest: &Digest, path: &Path) -> Result<u64, String> {
    // Through a fixed buffer: an object may be larger than the memory.
    let mut hasher = blake3::Hasher::new();
    // A pipe in the place of a file would be waited for.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err("is not a plain file".to_owned());
    }
    let file = fs::File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    hasher
        .update_reader(file)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let found = Digest::from(*hasher.finalize().as_bytes());
    if found == *digest {
        Ok(hasher.count())
    } else {
        Err(format!("its bytes have the digest {found}"))
    }
}

/// Every output of a successful execution.
fn outputs(rows: &Connection) -> rusqlite::Result<Vec<LostOutput>> {
    let mut query = rows.prepare(
        "SELECT o.digest, x.run, x.instance, o.name, x.signer IS NOT NULL FROM outputs o
         JOIN executions x ON x.id = o.execution WHERE x.ok = 1 ORDER BY x.id, o.ordinal",
    )?;
    let mut all = Vec::new();
    let mut outputs = query.query([])?;
    while let Some(row) = outputs.next()? {
        // A malformed digest is a fault of its row: the log names it.
        if let Ok(digest) = row.get::<_, String>(0)?.parse() {
            all.push(LostOutput {
                digest,
                run: RunId(row.get(1)?),
                instance: row.get(2)?,
                output: row.get(3)?,
                aside: false,
                taken: row.get(4)?,
            });
        }
    }
    Ok(all)
}

fn integrity(rows: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems: Vec<String> = rows
        .prepare("PRAGMA integrity_check")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    problems.retain(|problem| problem != "ok");
    Ok(problems)
}

/// Rows that name rows that are not there.
fn orphans(rows: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut orphans = rows.prepare("PRAGMA foreign_key_check")?;
    let mut orphans = orphans.query([])?;
    while let Some(row) = orphans.next()? {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        problems.push(format!(
            "a row of `{table}` refers to a missing row of `{parent}`"
        ));
    }
    Ok(problems)
}
