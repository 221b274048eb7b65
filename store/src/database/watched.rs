//! Notices that the database was removed, replaced or cut short while it is in use. SQLite would go
//! on writing to a file that nobody finds again, and say that all is well.
//! Knows nothing of what is in it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{At, Error};

/// The file that is open, as it was found under its name.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    place: (u64, u64),
    /// The largest size seen. Rows are never vacuumed away, so that the file only grows.
    size: AtomicU64,
}

impl Watched {
    /// The file that has just been opened.
    pub(crate) fn new(path: PathBuf) -> Result<Watched, Error> {
        let found = fs::metadata(&path).at("look at", &path)?;
        Ok(Watched {
            path,
            place: (found.dev(), found.ino()),
            size: AtomicU64::new(found.len()),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the name still stands for that file, and nothing of the file is gone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let found = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.lost("removed"));
            }
            found => found.at("look at", &self.path)?,
        };
        if (found.dev(), found.ino()) != self.place {
            return Err(self.lost("replaced by another file"));
        }
        // Another thread may have seen more since: then the file has it too.
        let before = self.size.load(Ordering::SeqCst);
        if found.len() < before {
            return Err(self.lost("truncated"));
        }
        self.size.fetch_max(found.len(), Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn lost(&self, how: &'static str) -> Error {
        Error::DatabaseLost {
            path: self.path.clone(),
            how,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_removed_replaced_or_truncated_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let how = |watched: &Watched| match watched.check() {
            Ok(()) => "there",
            Err(Error::DatabaseLost { how, .. }) => how,
            Err(error) => panic!("{error}"),
        };
        fs::write(&path, "12345").unwrap();
        let watched = Watched::new(path.clone()).unwrap();
        assert_eq!(how(&watched), "there");
        fs::write(&path, "1234567").unwrap();
        assert_eq!(how(&watched), "there", "it grows");
        fs::write(&path, "123456").unwrap();
        assert_eq!(how(&watched), "truncated");
        // The old file keeps its number while it has a name.
        fs::rename(&path, dir.path().join("old.db")).unwrap();
        assert_eq!(how(&watched), "removed");
        fs::write(&path, "1234567").unwrap();
        assert_eq!(how(&watched), "replaced by another file");
    }
}
