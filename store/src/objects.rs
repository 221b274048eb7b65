//! Objects: tables in files named by the digest of their bytes.
//! Knows nothing of who made them or why; that is provenance.
//!
//! A table is first written under a temporary name, where this process can already read it.
//! `make_durable` makes it durable and gives it its name. Nothing under `objects/` is ever half written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use parquet::errors::ParquetError;

use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::disk;
use crate::files::scratch::Scratch;
use crate::files::spool::{Spool, Spooled};
use crate::mutex::lock;
use crate::records::Staged;
use crate::store::Store;
use crate::tables::{canonical, decode, decode_columns, schema_text, write};

/// The folder of checkpoints, within that of the store.
pub(crate) const CHECKPOINTS: &str = "checkpoints";

impl Store {
    /// Where the object with this digest is, once it is committed.
    pub fn object_path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (folder, rest) = name.split_at(2);
        self.objects().join(folder).join(format!("{rest}.parquet"))
    }

    /// Whether the object is there, committed or pending. Its bytes are not checked.
    pub fn has(&self, digest: &Digest) -> bool {
        lock(&self.pending).contains_key(digest) || self.object_path(digest).exists()
    }

    /// Whether this process has written the object, and not yet committed it.
    pub(crate) fn has_pending(&self, digest: &Digest) -> bool {
        lock(&self.pending).contains_key(digest)
    }

    /// Writes a table, readable at once by this process, by others after the commit.
    /// An object that is already there is compared byte by byte, and replaced if it is damaged.
    pub fn put(&self, table: &RecordBatch) -> Result<Staged, Error> {
        let table = canonical(table)?;
        let mut spool = Spool::new(self.temporary()?);
        let path = spool.path().to_owned();
        let not_written = |error: ParquetError| match error {
            // An error of the disk comes back in the words of the Parquet writer.
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(error) => Err::<(), _>(*error).at("write", &path).unwrap_err(),
                Err(other) => Error::not_a_table("a table", other.to_string()),
            },
            other => Error::not_a_table("a table", other.to_string()),
        };
        let written = write(&table, &mut spool).map_err(not_written);
        let (digest, bytes, spooled) = written
            .and_then(|()| spool.finish().at("write", &path))
            .inspect_err(|_| drop(fs::remove_file(&path)))?;
        self.keep(digest, bytes, spooled, path)?;
        Ok(Staged {
            digest,
            rows: table.num_rows() as u64,
            bytes,
            schema: schema_text(&table.schema()),
        })
    }

    /// Takes in an object that somebody else made, from its bytes: those of this digest, or nothing. Readable at once
    /// by this process, by others after the commit.
    pub fn take(&self, digest: &Digest, bytes: &mut dyn io::Read) -> Result<(), Error> {
        let mut spool = Spool::of_many(self.temporary()?);
        let path = spool.path().to_owned();
        let copied = copy(bytes, &mut spool).and_then(|()| spool.finish());
        let copied = copied.at("write", &path);
        let (found, length, spooled) = copied.inspect_err(|_| drop(fs::remove_file(&path)))?;
        if found != *digest {
            drop(fs::remove_file(&path));
            return Err(Error::OtherBytes { digest: *digest });
        }
        self.keep(found, length, spooled, path)
    }

    /// Takes an object in, unless it is here already.
    fn keep(&self, digest: Digest, bytes: u64, at: Spooled, path: PathBuf) -> Result<(), Error> {
        let pending = lock(&self.pending).contains_key(&digest);
        if pending || self.holds(&digest, bytes, &at)? {
            if let Spooled::File(path) = at {
                disk::remove_file(&path).at("remove", &path)?;
            }
            return Ok(());
        }
        if let Spooled::Memory(bytes) = at {
            disk::write_new(&path, &bytes).at("write", &path)?;
        }
        lock(&self.pending).insert(digest, path);
        Ok(())
    }

    /// Reads a table and checks that its bytes are the ones that were stored.
    /// Bytes that are not are set aside, so that the next run recomputes them.
    pub fn read(&self, digest: &Digest) -> Result<RecordBatch, Error> {
        let pending = lock(&self.pending).get(digest).cloned();
        // A commit may move a pending object to its place between these two looks.
        let places = pending.into_iter().chain([self.object_path(digest)]);
        for path in places {
            let bytes = match disk::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.at("read", &path)?,
            };
            if Digest::of(&bytes) == *digest {
                return decode(bytes.into());
            }
            let moved_to = self.set_aside(digest, &path)?;
            lock(&self.pending).remove(digest);
            return Err(Error::Damaged {
                digest: *digest,
                moved_to,
            });
        }
        // The first reader reported the damage to one person only: report it again.
        match self.aside(digest) {
            Some(moved_to) => Err(Error::Damaged {
                digest: *digest,
                moved_to,
            }),
            None => Err(Error::Missing { digest: *digest }),
        }
    }

    /// The same for readers that change nothing: a damaged object is reported, and stays where it is.
    pub fn peek(&self, digest: &Digest) -> Result<RecordBatch, Error> {
        let path = self.object_path(digest);
        let bytes = match disk::read(&path) {
            // Not there, or not there any more: the reader knows why.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.read(digest),
            other => other.at("read", &path)?,
        };
        match Digest::of(&bytes) == *digest {
            true => decode(bytes.into()),
            false => Err(Error::Unsound { digest: *digest }),
        }
    }

    /// The same for some columns, those of them that the table has: others are not even unpacked.
    pub fn peek_columns(&self, digest: &Digest, columns: &[&str]) -> Result<RecordBatch, Error> {
        let path = self.object_path(digest);
        let bytes = match disk::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing { digest: *digest });
            }
            other => other.at("read", &path)?,
        };
        match Digest::of(&bytes) == *digest {
            true => decode_columns(bytes.into(), columns),
            false => Err(Error::Unsound { digest: *digest }),
        }
    }

    /// Where an object lies that was damaged and set aside, the newest if it happened often.
    pub(crate) fn aside(&self, digest: &Digest) -> Option<PathBuf> {
        let folder = self.root.join("damaged");
        let place = |n: u32| folder.join(format!("{digest}-{n}.parquet"));
        (1..=9).rev().map(place).find(|path| path.exists())
    }

    /// Makes objects durable under their names: their bytes first, then the names.
    /// Only the holder of the writing connection calls this, so pending files do not move meanwhile.
    pub(crate) fn make_durable(&self, digests: &BTreeSet<Digest>) -> Result<(), Error> {
        let mut moves = BTreeMap::new();
        for digest in digests {
            let from = lock(&self.pending).get(digest).cloned();
            match from {
                Some(from) => drop(moves.insert(*digest, (from, self.object_path(digest)))),
                None if self.object_path(digest).exists() => {}
                None => return Err(Error::Missing { digest: *digest }),
            }
        }
        sync_all(moves.values().map(|(from, _)| from.clone()).collect())?;

        // Also folders of objects that were there before: the process that made them
        // may not have synced them yet, and our rows will name them.
        let paths = digests.iter().map(|digest| self.object_path(digest));
        let folders: BTreeSet<PathBuf> = paths
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        let mut new_folder = false;
        for folder in &folders {
            match disk::create_dir(folder) {
                Ok(()) => new_folder = true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).at("create the folder", folder),
            }
        }
        for (digest, (from, to)) in &moves {
            disk::rename(from, to).at("move an object to", to)?;
            lock(&self.pending).remove(digest);
        }
        let mut folders: Vec<PathBuf> = folders.into_iter().collect();
        if new_folder {
            folders.push(self.objects());
        }
        sync_all(folders)
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// Whether the object is in its place with exactly these bytes.
    fn holds(&self, digest: &Digest, length: u64, bytes: &Spooled) -> Result<bool, Error> {
        let path = self.object_path(digest);
        let there = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.at("look at", &path)?,
        };
        // The size reveals most damage without reading.
        let same = there.len() == length
            && match bytes {
                Spooled::Memory(bytes) => disk::read(&path).at("read", &path)? == *bytes,
                Spooled::File(_) => Digest::of_file(&path).at("read", &path)? == *digest,
            };
        if same {
            return Ok(true);
        }
        self.set_aside(digest, &path)?;
        Ok(false)
    }

    /// Moves a damaged object out of the way, without overwriting an earlier one.
    pub(crate) fn set_aside(&self, digest: &Digest, path: &Path) -> Result<PathBuf, Error> {
        let damaged = self.root.join("damaged");
        disk::create_dir_all(&damaged).at("create the folder", &damaged)?;
        let name = |n: u32| damaged.join(format!("{digest}-{n}.parquet"));
        let to = (1..).map(name).find(|path| !path.exists());
        let to = to.expect("some number is free");
        disk::rename(path, &to).at("set aside the damaged object", path)?;
        Ok(to)
    }

    /// A path for a temporary file or folder that nobody else uses. What is put there is removed
    /// when the store is closed or, should this process be killed, by the next one.
    pub fn scratch_path(&self) -> Result<PathBuf, Error> {
        self.temporary()
    }

    /// The folder for what executions have saved of results that are not finished. It may not exist.
    pub fn checkpoints(&self) -> PathBuf {
        self.root().join(CHECKPOINTS)
    }

    fn temporary(&self) -> Result<PathBuf, Error> {
        let mut scratch = lock(&self.scratch);
        let scratch = match &mut *scratch {
            Some(scratch) => scratch,
            none => none.insert(Scratch::new(&self.root.join("tmp"))?),
        };
        Ok(scratch.next_file())
    }
}

/// Copies what comes from a network into a spool. The disk gets it meanwhile: synced at the end alone, large objects would
/// take nearly twice as long as the network does.
fn copy(bytes: &mut dyn io::Read, spool: &mut Spool) -> io::Result<()> {
    const SYNCED: u64 = 8 << 20;
    let mut buffer = vec![0; 256 << 10];
    let mut unsynced = 0;
    loop {
        let count = match bytes.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        io::Write::write_all(spool, &buffer[..count])?;
        unsynced += count as u64;
        if unsynced > SYNCED {
            spool.sync()?;
            unsynced = 0;
        }
    }
}

/// Waits until files or folders are on the disk. The waits overlap: a file system
/// writes its journal once for all who wait for it.
fn sync_all(paths: Vec<PathBuf>) -> Result<(), Error> {
    const AT_ONCE: usize = 16;
    let sync = |path: &PathBuf| disk::sync(path).at("write to the disk", path);
    if paths.len() < 2 {
        return paths.iter().try_for_each(sync);
    }
    // Threads of our own: the pool's are busy with stages, and these only wait.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE.min(paths.len()))
            .map(|_| {
                scope.spawn(|| {
                    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                        sync(path)?;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut results = workers.into_iter().map(|worker| worker.join());
        results.try_for_each(|result| result.expect("syncing does not panic"))
    })
}
