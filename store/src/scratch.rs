//! Temporary files: one folder a process, locked while it lives, so that what a dead process
//! left behind can be told from what a living one is writing. Knows nothing of objects.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::error::At;
use crate::{Error, Lease};

/// A process's own folder for temporary files. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
    files: u64,
    /// Dropped after the folder has gone.
    _lease: Lease,
}

impl Scratch {
    pub(crate) fn new(tmp: &Path) -> Result<Scratch, Error> {
        loop {
            let folder = tempfile::Builder::new()
                .prefix(&format!("{}-", process::id()))
                .tempdir_in(tmp)
                .at("create a folder in", tmp)?
                .keep();
            // Another process may sweep the folder before we have locked it: then make another.
            match Lease::try_take(&folder.join("lock")) {
                Ok(Some(lease)) => {
                    return Ok(Scratch {
                        folder,
                        files: 0,
                        _lease: lease,
                    });
                }
                Ok(None) => {}
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A path that nobody else uses.
    pub(crate) fn next_file(&mut self) -> PathBuf {
        self.files += 1;
        self.folder.join(self.files.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is swept by the next process.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of processes that have died. Litter is no reason to fail,
/// so what cannot be removed stays.
pub(crate) fn sweep(tmp: &Path) {
    for entry in fs::read_dir(tmp).into_iter().flatten().flatten() {
        let folder = entry.path();
        if folder.is_dir()
            && let Ok(Some(_lease)) = Lease::try_take(&folder.join("lock"))
        {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let mut alive = Scratch::new(dir.path()).unwrap();
        let file = alive.next_file();
        fs::write(&file, "half").unwrap();
        let dead = dir.path().join("1-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("1"), "half").unwrap();
        fs::write(dead.join("lock"), "").unwrap();

        sweep(dir.path());
        assert!(file.exists());
        assert!(!dead.exists());
        drop(alive);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
