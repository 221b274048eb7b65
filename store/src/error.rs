//! What can go wrong in the store: where, what, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {doing} `{}`: {source}{}", path.display(), advice(source))]
    Io {
        /// What was attempted, as a verb: "read", "create the folder".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },

    /// SQLite refused something.
    #[error("cannot {doing} `{}`: {source}{}", path.display(), database_advice(source))]
    Database {
        /// What was attempted, as a verb.
        doing: &'static str,
        /// The database file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },

    /// The database was written by an older program and may not be brought forward.
    #[error(
        "`{}` has format {found}, and this program reads format {known}: it upgrades a writable store",
        path.display()
    )]
    OlderSchema {
        /// The database file.
        path: PathBuf,
        /// The format found in the file.
        found: i64,
        /// The format known here.
        known: i64,
    },

    /// The database was written by a newer program.
    #[error(
        "`{}` has format {found}, but this program knows formats up to {known}: use the newer `ablate` that wrote it, or another `--store`",
        path.display()
    )]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// The format found in the file.
        found: i64,
        /// The newest format known here.
        known: i64,
    },

    /// The database is empty, and the objects show that it was not.
    #[error(
        "`{}` is empty though the store has objects: the history is lost; put back a copy of it, or move it away and run again, which keeps the objects",
        path.display()
    )]
    EmptyDatabase {
        /// The database file.
        path: PathBuf,
    },

    /// The database went away while it was in use.
    #[error(
        "`{}` was {how} while it was in use, and what was recorded is lost: put back a copy of it, or move what is left of it (also -wal and -shm) away, and run again; the objects are kept",
        path.display()
    )]
    DatabaseLost {
        /// The database file.
        path: PathBuf,
        /// What happened to it: "removed", "truncated".
        how: &'static str,
    },

    /// Other processes use the store, so nothing may be removed from it.
    #[error("the store `{}` is in use by a run or another command: wait until it has ended, then try again", root.display())]
    Busy {
        /// The store's folder.
        root: PathBuf,
    },

    /// One process has the store, because of the file system that it lies on.
    #[error(
        "the store `{}` lies on {file_system}, where SQLite cannot share its database, and another process uses it{holder}: \
         wait until that has ended, or keep the database on a local disk with `ablate run --db DIR`",
        root.display()
    )]
    Exclusive {
        /// The store's folder.
        root: PathBuf,
        /// What it lies on.
        file_system: &'static str,
        /// Which process it is, as far as is known.
        holder: String,
    },

    /// A database was to lie where it cannot be shared.
    #[error("`{}` lies on {file_system}: name a folder on a local disk for the database", folder.display())]
    DatabaseOnNetwork {
        /// The folder for the database.
        folder: PathBuf,
        /// What it lies on.
        file_system: &'static str,
    },

    /// The store remembers a folder in which its database is not.
    #[error(
        "the database of the store `{}` is in `{}` on {host}, and is not to be found there now: run on that machine, or bring its folder back",
        root.display(), folder.display()
    )]
    DatabaseElsewhere {
        /// The store's folder.
        root: PathBuf,
        /// The folder of the database.
        folder: PathBuf,
        /// The machine that had it.
        host: String,
    },

    /// The database of a store was to be another one.
    #[error(
        "the database of the store `{}` is in `{}`, and cannot be moved to `{}`: name the former, or an empty folder for a store whose database has not been moved yet",
        root.display(), home.display(), folder.display()
    )]
    OtherDatabase {
        /// The store's folder.
        root: PathBuf,
        /// Where its database is.
        home: PathBuf,
        /// Where it was to be.
        folder: PathBuf,
    },

    /// There is no store where one is needed.
    #[error("no store at `{}`: `ablate run` creates one", root.display())]
    NoStore {
        /// The folder that was looked at.
        root: PathBuf,
    },

    /// An object's bytes do not have its digest any more; the file was set aside.
    #[error(
        "object {} was damaged on disk and moved to `{}`: run again to rebuild it",
        digest.short(), moved_to.display()
    )]
    Damaged {
        /// The digest that the bytes should have.
        digest: Digest,
        /// Where the damaged file is now.
        moved_to: PathBuf,
    },

    /// An object's bytes do not have its digest any more; nothing was moved.
    #[error(
        "object {} is damaged on disk: `ablate fsck --repair` sets it aside, and the next run recomputes it",
        digest.short()
    )]
    Unsound {
        /// The digest that the bytes should have.
        digest: Digest,
    },

    /// What was offered as an object is not it.
    #[error("what was offered as object {} has other bytes", digest.short())]
    OtherBytes {
        /// The digest that the bytes should have.
        digest: Digest,
    },

    /// An object is not in the store.
    #[error("object {} is not in the store (removed by gc, or lost): run again to rebuild it", digest.short())]
    Missing {
        /// The digest that was requested.
        digest: Digest,
    },

    /// Something is not a table that the store can hold.
    #[error("{what} cannot be stored as a table: {why}")]
    NotATable {
        /// The column, table or file.
        what: String,
        /// What is wrong, and what would be right.
        why: String,
    },

    /// No run has this number.
    #[error("no run {0}: `ablate runs` lists them")]
    NoSuchRun(i64),
}

impl Error {
    pub(crate) fn not_a_table(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error::NotATable {
            what: what.into(),
            why: why.into(),
        }
    }
}

/// Turns an `io::Result` into ours: `fs::read(path).at("read", path)?`.
pub(crate) trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            doing,
            path: path.to_owned(),
            source,
        })
    }
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Database {
            doing,
            path: path.to_owned(),
            source,
        })
    }
}

/// A damaged database costs the history and the look-ups, never an object.
fn database_advice(source: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly, SystemIoFailure};
    match source.sqlite_error_code() {
        Some(ReadOnly) => MAY_NOT_WRITE,
        Some(SystemIoFailure) => "; is the disk full?",
        Some(DiskFull) => NO_SPACE,
        Some(DatabaseCorrupt | NotADatabase) => {
            "; the file is damaged: move it and its -wal and -shm away, and run again: objects are kept, the history is lost"
        }
        _ => "",
    }
}

const MAY_NOT_WRITE: &str = "; this store is read-only: check its owner and free disk space, or choose another folder with `--store`";

const NO_SPACE: &str = "; free some space (`ablate gc --dry-run` shows what can be removed)";

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NO_SPACE,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a writable folder with `--store`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_where_what_and_what_next() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = Err::<(), _>(full)
            .at("write", Path::new("objects/ab"))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write `objects/ab`: no storage space; free some space (`ablate gc --dry-run` shows what can be removed)"
        );
        let closed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        let error = Err::<(), _>(rusqlite::Error::SqliteFailure(closed, None))
            .at("set up", Path::new("provenance.db"))
            .unwrap_err();
        let message = error.to_string();
        assert!(message.ends_with(MAY_NOT_WRITE), "{message}");
    }
}
