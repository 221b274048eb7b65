//! Opens a store: its folders, its locks and its database.
//! Knows nothing of what is inside objects or rows.
//!
//! ```text
//! objects/ab/cd….parquet   one file a table, named by the BLAKE3 of its bytes
//! provenance.db            what was run, how, and what came of it
//! tmp/                     files that are being written, a folder a process
//! damaged/                 objects whose bytes went bad, set aside
//! locks/                   who makes which key right now, and who sets the store up
//! store.lock               shared by all who use the store; gc needs it alone
//! ```
//!
//! The database and the locks may lie elsewhere: `place`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::database::migrations;
use crate::database::watched::Watched;
use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::disk;
use crate::files::scratch::{self, Scratch};
use crate::lease::{Lease, Leases};
use crate::mutex::lock;
use crate::place::{Place, StoreLock, lock_file};
use crate::records::RunId;

/// An open store, to be shared by threads.
#[derive(Debug)]
pub struct Store {
    pub(crate) root: PathBuf,
    place: Place,
    /// Objects written but not yet committed, with where they are now.
    pub(crate) pending: Mutex<HashMap<Digest, PathBuf>>,
    /// This process's temporary files; made when first needed.
    pub(crate) scratch: Mutex<Option<Scratch>>,
    /// The database's file, in case it goes away.
    pub(crate) watched: Watched,
    /// The only connection that writes.
    pub(crate) writer: Mutex<Connection>,
    /// A second one, so that looking up never waits for a commit.
    pub(crate) reader: Mutex<Connection>,
    /// None for a read-only store.
    leases: Option<Arc<Leases>>,
    /// Says to others that a run of this process is under way.
    under_way: Mutex<HashMap<RunId, Lease>>,
    /// Tells gc that the store is in use, until the store is dropped.
    _shared: Option<StoreLock>,
}

impl Store {
    /// Opens the store in this folder, creating or upgrading it as needed.
    pub fn open(root: &Path) -> Result<Store, Error> {
        Store::open_with(root, None)
    }

    /// The same; if a folder on a local disk is named for the database, that is moved there, and the store remembers.
    pub fn open_with(root: &Path, database: Option<&Path>) -> Result<Store, Error> {
        for folder in ["", "objects", "tmp", "damaged", "locks"] {
            let folder = root.join(folder);
            disk::create_dir_all(&folder).at("create the folder", &folder)?;
        }
        let ignore = root.join(".gitignore");
        // Empty: a process died between making it and writing it.
        if fs::metadata(&ignore).map_or(true, |found| found.is_file() && found.len() == 0) {
            disk::write(&ignore, b"*\n").at("write", &ignore)?;
        }
        let store = Store::connect(match database {
            Some(folder) => Place::with_database_in(root, folder)?,
            None => Place::of(root)?,
        })?;
        let _ = scratch::sweep(&root.join("tmp"));
        Ok(store)
    }

    /// Opens the store in this folder if there is one, without creating any.
    /// One of an older format is upgraded. One that may not be written, because it is somebody
    /// else's or on a read-only disk, can still be looked at.
    pub fn open_existing(root: &Path) -> Result<Option<Store>, Error> {
        let place = Place::of(root)?;
        if !place.database().exists() {
            return Ok(None);
        }
        match Store::connect(place.clone()) {
            Err(known @ (Error::EmptyDatabase { .. } | Error::Exclusive { .. })) => Err(known),
            Err(refused) => match Store::open_read_only(place) {
                // Says more than that it may not be written.
                Err(older @ Error::OlderSchema { .. }) => Err(older),
                looked => looked.map_err(|_| refused).map(Some),
            },
            store => store.map(Some),
        }
    }

    fn open_read_only(place: Place) -> Result<Store, Error> {
        let database = place.database();
        let connection = || migrations::open_read_only(&database);
        let writer = connection()?;
        Ok(Store {
            root: place.root().to_owned(),
            pending: Mutex::default(),
            scratch: Mutex::default(),
            watched: Watched::new(database.clone())?,
            writer: Mutex::new(writer),
            reader: Mutex::new(connection()?),
            leases: None,
            under_way: Mutex::default(),
            _shared: place.shared().ok(),
            place,
        })
    }

    /// The objects of a store alone, for a process that neither looks up nor records anything: the database is not
    /// opened, and no lock is taken. Temporary files go to `scratch`, on the same disk.
    pub fn objects_only(root: &Path, scratch: &Path) -> Result<Store, Error> {
        let memory = || Connection::open_in_memory().at("set up", root);
        Ok(Store {
            root: root.to_owned(),
            pending: Mutex::default(),
            scratch: Mutex::new(Some(Scratch::in_folder(scratch)?)),
            watched: Watched::new(root.to_owned())?,
            writer: Mutex::new(memory()?),
            reader: Mutex::new(memory()?),
            leases: None,
            under_way: Mutex::default(),
            _shared: None,
            place: Place::nowhere(root),
        })
    }

    /// Makes objects durable under their names, without a record of them: somebody else writes that.
    pub fn publish(&self, digests: impl IntoIterator<Item = Digest>) -> Result<(), Error> {
        self.make_durable(&digests.into_iter().collect())
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The network file system that the database lies on. Then this process has the store for itself.
    pub fn network(&self) -> Option<&'static str> {
        self.place.network()
    }

    /// Takes the right to make the result of this key, or `None` when another process or thread
    /// has it. The right of a process that died is free again.
    pub fn try_lease(&self, key: &Digest) -> Result<Option<Lease>, Error> {
        match &self.leases {
            Some(leases) => leases.try_take(key),
            None => Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)).at("write", &self.root),
        }
    }

    /// Whether any process holds a lease. Those of dead processes are free: the kernel sees to it.
    pub(crate) fn leases_are_held(&self) -> Result<bool, Error> {
        match &self.leases {
            Some(leases) => leases.any_held(),
            None => Ok(false),
        }
    }

    /// Lets others see that a run is under way, until [`Store::unmark_running`] or the process ends.
    pub(crate) fn mark_running(&self, run: RunId) -> Result<(), Error> {
        let lease = self.try_lease(&running_key(run))?;
        lock(&self.under_way).extend(lease.map(|lease| (run, lease)));
        Ok(())
    }

    pub(crate) fn unmark_running(&self, run: RunId) {
        lock(&self.under_way).remove(&run);
    }

    /// Whether the process of a run still works at it, however it may have died; `None` where
    /// it is unknown, because the store is read-only.
    pub fn is_under_way(&self, run: RunId) -> Result<Option<bool>, Error> {
        let leases = self.leases.as_ref();
        leases
            .map(|leases| leases.is_held(&running_key(run)))
            .transpose()
    }

    fn connect(place: Place) -> Result<Store, Error> {
        let shared = place.shared()?;
        let (writer, reader) = connections(&place)?;
        Ok(Store {
            root: place.root().to_owned(),
            pending: Mutex::default(),
            scratch: Mutex::default(),
            watched: Watched::new(place.database())?,
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            leases: Some(Leases::open(&place.locks().join("keys"))?),
            under_way: Mutex::default(),
            _shared: Some(shared),
            place,
        })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.place.database()
    }

    /// Reads rows, without waiting for a commit.
    pub(crate) fn query<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        read(&lock(&self.reader)).at(doing, &self.database())
    }

    /// All that is written, in the file that has the database's name; or an error.
    pub(crate) fn written<T>(
        &self,
        doing: &'static str,
        writer: &mut Connection,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.watched.check()?;
        let done = in_transaction(writer, write).at(doing, self.watched.path());
        self.watched.check()?;
        done
    }

    /// Writes rows: all of them or, after an error, none.
    pub(crate) fn transaction<T>(
        &self,
        doing: &'static str,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.written(doing, &mut lock(&self.writer), write)
    }
}

/// All that is written, or nothing.
fn in_transaction<T>(
    writer: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    disk::pass_database("begin a transaction")?;
    let rows = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = write(&rows)?;
    disk::pass_database("commit a transaction")?;
    rows.commit()?;
    Ok(value)
}

/// What stands for a run among the leases. No key has it: those are digests of records.
fn running_key(run: RunId) -> Digest {
    Digest::of(format!("run {run}").as_bytes())
}

/// A writing and a reading connection to a database of the newest format.
pub(crate) fn connections(place: &Place) -> Result<(Connection, Connection), Error> {
    let path = place.database();
    // Two processes must not create or upgrade at once: SQLite does not wait when the
    // journal's mode is being changed, so they take turns here.
    let locks = place.locks();
    disk::create_dir_all(&locks).at("create the folder", &locks)?;
    let turn = locks.join("setup");
    let file = lock_file(&turn)?;
    file.lock().at("lock", &turn)?;
    let empty = fs::metadata(&path).is_ok_and(|found| found.len() == 0);
    if empty && has_objects(place.root()) {
        return Err(Error::EmptyDatabase { path });
    }
    let writer = match place.network() {
        None => migrations::open(&path)?,
        Some(_) => migrations::open_rollback(&path)?,
    };
    Ok((writer, migrations::open_reader(&path)?))
}

fn has_objects(root: &Path) -> bool {
    let folders = fs::read_dir(root.join("objects"));
    let mut folders = folders.into_iter().flatten().flatten();
    folders.any(|folder| fs::read_dir(folder.path()).is_ok_and(|mut files| files.next().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_an_absent_store_for_reading_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("none");
        assert!(Store::open_existing(&root).unwrap().is_none());
        assert!(!root.exists());
    }

    #[test]
    fn many_threads_may_create_one_store_at_once() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| Store::open(dir.path()).unwrap());
            }
        });
        assert!(Store::open_existing(dir.path()).unwrap().is_some());
        let ignore = fs::read_to_string(dir.path().join(".gitignore")).unwrap();
        assert_eq!(ignore, "*\n");
    }
}
