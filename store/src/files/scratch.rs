//! Temporary files: one folder a process, locked while it lives, so that what a dead process
//! left behind can be told from what a living one is writing. Knows nothing of objects.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use super::disk;
use crate::error::{At, Error};

/// A process's own folder for temporary files. Removed when dropped, or by the next process that
/// makes one beside it, should this one be killed.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    files: u64,
    /// Tells others that the process lives. Closed after the folder has gone.
    _lock: File,
}

impl Scratch {
    /// A new folder in this one, which is made if need be, and from which the folders of processes
    /// that died are removed.
    pub fn in_folder(tmp: &Path) -> Result<Scratch, Error> {
        disk::create_dir_all(tmp).at("create the folder", tmp)?;
        let _ = sweep(tmp);
        Scratch::new(tmp)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn new(tmp: &Path) -> Result<Scratch, Error> {
        loop {
            disk::pass("make a folder").at("create a folder in", tmp)?;
            let folder = tempfile::Builder::new()
                .prefix(&format!("{}-", process::id()))
                .tempdir_in(tmp)
                .at("create a folder in", tmp)?
                .keep();
            // Another process may sweep the folder before we have locked it: then make another.
            if let Some(lock) = try_own(&folder).at("lock", &folder)? {
                return Ok(Scratch {
                    folder,
                    files: 0,
                    _lock: lock,
                });
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

/// Removes the folders of processes that have died. Litter is not a reason to fail, so what cannot be
/// removed stays: each is named, with the reason.
pub(crate) fn sweep(tmp: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for entry in fs::read_dir(tmp).into_iter().flatten().flatten() {
        let folder = entry.path();
        // Not through a link: it may lead out of the store.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let removed = match try_own(&folder) {
            Ok(Some(_lock)) => fs::remove_dir_all(&folder),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed
            && folder.exists()
        {
            left.push(format!("{}: {error}", folder.join("lock").display()));
        }
    }
    left
}

/// Locks the folder, or `None` when it belongs to a living process or has just been swept.
fn try_own(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let opened = disk::open(options.create(true).truncate(false).write(true), &path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    // Whoever locked the file before us may have removed it since we opened it.
    let ours = file.metadata()?;
    let still_there =
        fs::metadata(&path).is_ok_and(|it| (it.dev(), it.ino()) == (ours.dev(), ours.ino()));
    Ok(still_there.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opening a pipe waits for whoever is at its other end: nobody, for ever.
    #[test]
    fn a_pipe_in_the_place_of_a_lock_is_named_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let strange = dir.path().join("1-strange");
        fs::create_dir(&strange).unwrap();
        let mut mkfifo = process::Command::new("mkfifo");
        assert!(mkfifo.arg(strange.join("lock")).status().unwrap().success());
        let left = sweep(dir.path());
        let lock = strange.join("lock");
        assert_eq!(
            left,
            [format!(
                "{}: it is a named pipe, not a file: remove it",
                lock.display()
            )]
        );
        assert!(strange.exists());
    }

    #[test]
    fn a_new_folder_sweeps_the_place_that_it_is_in() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = dir.path().join("cache/tmp");
        let dead = tmp.join("1-dead");
        fs::create_dir_all(&dead).unwrap();
        fs::write(dead.join("lock"), "").unwrap();
        let first = Scratch::in_folder(&tmp).unwrap();
        let second = Scratch::in_folder(&tmp).unwrap();
        assert!(!dead.exists() && first.folder().is_dir() && second.folder().is_dir());
    }

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
