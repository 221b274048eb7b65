//! Where the parts of a store lie. Objects are in its folder; the database and the locks are there too or, if a folder
//! on a local disk was named for them, there, which the store remembers.
//! Knows nothing of what is in any of them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::{disk, file_system};

/// In a store's folder: where its database is.
const POINTER: &str = "database.json";
/// Beside a database that is not in its store: which store it belongs to.
const OWNER: &str = "store.json";

/// Where the parts of a store lie.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    root: PathBuf,
    /// The folder of the database and of the locks.
    home: PathBuf,
    /// The network file system that `home` lies on.
    network: Option<&'static str>,
}

/// What ties a store to a database elsewhere. Both have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tie {
    /// A name that no other store has.
    store: String,
    /// The folder of the database.
    folder: PathBuf,
    /// The machine that has this folder.
    host: String,
}

impl Place {
    /// Of the store in this folder, as it remembers.
    pub(crate) fn of(root: &Path) -> Result<Place, Error> {
        let home = match tie(&root.join(POINTER))? {
            None => root.to_owned(),
            Some(tie) if self::tie(&tie.folder.join(OWNER))?.as_ref() == Some(&tie) => tie.folder,
            Some(Tie { folder, host, .. }) => {
                return Err(Error::DatabaseElsewhere {
                    root: root.to_owned(),
                    folder,
                    host,
                });
            }
        };
        let network = match home.exists() {
            true => file_system::network(&home).at("look at the file system of", &home)?,
            false => None,
        };
        Ok(Place {
            root: root.to_owned(),
            home,
            network,
        })
    }

    /// Of a store whose database is not to be opened.
    pub(crate) fn nowhere(root: &Path) -> Place {
        Place {
            root: root.to_owned(),
            home: root.to_owned(),
            network: None,
        }
    }

    /// The same, with the database in this folder from now on.
    pub(crate) fn with_database_in(root: &Path, folder: &Path) -> Result<Place, Error> {
        let folder = std::path::absolute(folder).at("find", folder)?;
        disk::create_dir_all(&folder).at("create the folder", &folder)?;
        if let Some(file_system) = file_system::network(&folder).at("look at", &folder)? {
            return Err(Error::DatabaseOnNetwork {
                folder,
                file_system,
            });
        }
        let place = Place::of(root)?;
        if place.home != folder {
            place.move_to(&folder)?;
        }
        Place::of(root)
    }

    /// Ties the store to a folder, and moves its database there if it has one.
    fn move_to(&self, folder: &Path) -> Result<(), Error> {
        if self.home != self.root || folder.join("provenance.db").exists() {
            return Err(Error::OtherDatabase {
                root: self.root.clone(),
                home: self.home.clone(),
                folder: folder.to_owned(),
            });
        }
        let _alone = self.alone()?;
        let (from, to) = (self.database(), folder.join("provenance.db"));
        if from.exists() {
            // Without a journal beside it, the one file is all of it.
            crate::database::migrations::open_rollback(&from)?;
            let partly = folder.join("provenance.db.partly");
            fs::copy(&from, &partly).at("copy the database to", &partly)?;
            disk::sync(&partly).at("write to the disk", &partly)?;
            disk::rename(&partly, &to).at("move the database to", &to)?;
        }
        let host = host();
        let seed = format!(
            "{host} {} {:?}",
            self.root.display(),
            std::time::SystemTime::now()
        );
        let tie = Tie {
            store: Digest::of(seed.as_bytes()).short(),
            folder: folder.to_owned(),
            host,
        };
        let text = serde_json::to_string(&tie).expect("plain values");
        for path in [folder.join(OWNER), self.root.join(POINTER)] {
            let new = path.with_extension("new");
            disk::write(&new, text.as_bytes()).at("write", &new)?;
            disk::sync(&new).at("write to the disk", &new)?;
            disk::rename(&new, &path).at("write", &path)?;
        }
        if from.exists() {
            disk::remove_file(&from).at("remove", &from)?;
        }
        Ok(())
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home.join("provenance.db")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.home.join("locks")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The network file system that the database lies on: then one process has the store, and WAL is not used.
    pub(crate) fn network(&self) -> Option<&'static str> {
        self.network
    }

    /// The lock that all share who use the store; one that has the store for itself on a network file system.
    pub(crate) fn shared(&self) -> Result<StoreLock, Error> {
        let path = self.home.join("store.lock");
        let Some(file_system) = self.network else {
            let file = lock_file(&path)?;
            file.lock_shared().at("lock", &path)?;
            return Ok(StoreLock {
                _file: file,
                driver: None,
            });
        };
        let busy = |holder: Option<Driver>| Error::Exclusive {
            root: self.root.clone(),
            file_system,
            holder: holder.map_or_else(String::new, |it| it.described(&self.driver())),
        };
        let file = match try_lock(&path)? {
            Some(file) => file,
            None => return Err(busy(Driver::read(&self.driver()))),
        };
        // On some of these file systems a lock is not seen by other machines, but a file is.
        let host = host();
        match Driver::read(&self.driver()) {
            Some(driver) if driver.host != host => Err(busy(Some(driver))),
            _ => {
                let driver = Driver {
                    host,
                    process: std::process::id(),
                };
                let text = serde_json::to_string(&driver).expect("plain values");
                disk::write(&self.driver(), text.as_bytes()).at("write", &self.driver())?;
                Ok(StoreLock {
                    _file: file,
                    driver: Some(self.driver()),
                })
            }
        }
    }

    /// The whole store for one process, for as long as the file lives; `Busy` when others use it.
    pub(crate) fn alone(&self) -> Result<File, Error> {
        let path = self.home.join("store.lock");
        try_lock(&path)?.ok_or_else(|| Error::Busy {
            root: self.root.clone(),
        })
    }

    fn driver(&self) -> PathBuf {
        self.home.join("driver.json")
    }
}

/// Tells others that the store is in use, until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
    driver: Option<PathBuf>,
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            // Left behind, it stops other machines only, and the error says what to remove.
            let _ = fs::remove_file(driver);
        }
    }
}

/// The one process that has a store on a network file system.
#[derive(Debug, Serialize, Deserialize)]
struct Driver {
    host: String,
    process: u32,
}

impl Driver {
    fn read(path: &Path) -> Option<Driver> {
        serde_json::from_slice(&disk::read(path).ok()?).ok()
    }

    fn described(&self, path: &Path) -> String {
        let Driver { host, process } = self;
        let file = path.display();
        match *host == self::host() {
            true => format!(" (process {process})"),
            false => format!(" (process {process} on {host}; if that has ended, remove `{file}`)"),
        }
    }
}

/// This machine's name.
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn tie(path: &Path) -> Result<Option<Tie>, Error> {
    match disk::read(path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes).map_err(io::Error::from);
            Ok(Some(read.at("read", path)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// The lock of a whole file, or none if somebody has it.
fn try_lock(path: &Path) -> Result<Option<File>, Error> {
    // NFS gives a lock for one process only on what may be written.
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = disk::open(&options, path).at("open the lock file", path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(source).at("lock", path),
    }
}

/// A file to lock.
pub(crate) fn lock_file(path: &Path) -> Result<File, Error> {
    // Reading suffices to lock, so a store that was made by somebody else can be looked at.
    match disk::open(fs::OpenOptions::new().read(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let opened = disk::open(fs::OpenOptions::new().create(true).append(true), path);
            opened.at("create the lock file", path)
        }
        other => other.at("open the lock file", path),
    }
}
