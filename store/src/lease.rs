//! Leases: the right to make the result of one key, held by one worker of one process.
//! Knows nothing of what a key is; a lease is a file that the operating system locks.
//!
//! The lock belongs to the open file, so the kernel frees it when its process dies, however it dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::At;

/// The right to make one result. Given back when dropped.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    /// Holds the lock; closed, and so unlocked, after `drop` has removed the name.
    _file: File,
}

impl Lease {
    /// Takes the lease at this path, or `None` when somebody has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Lease>, Error> {
        loop {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .at("create the lock file", path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(source).at("lock", path),
            }
            // The last holder may have removed the file between our opening and our locking it.
            // Then we hold a lock that nobody else can see, and must try again with the new file.
            if is_still_at(&file, path).at("look at the lock file", path)? {
                let path = path.to_owned();
                return Ok(Some(Lease { path, _file: file }));
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Removed while locked, so that whoever opened it before sees that it has gone.
        // A file that cannot be removed is only litter: the lock ends with the handle.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_holder_at_a_time_and_free_after_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let lease = Lease::try_take(&path).unwrap().expect("nobody has it");
        assert!(Lease::try_take(&path).unwrap().is_none());
        drop(lease);
        assert!(!path.exists());
        assert!(Lease::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn many_threads_never_hold_it_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let (inside, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if let Some(lease) = Lease::try_take(&path).unwrap() {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            taken.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(lease);
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0);
    }

    const HOLD: &str = "ABLATE_TEST_HOLD_LEASE";

    /// Not a test of its own: the other process of the next test.
    #[test]
    fn holder_process() {
        if let Some(path) = std::env::var_os(HOLD) {
            let _lease = Lease::try_take(Path::new(&path)).unwrap().unwrap();
            println!("\nholding");
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
    }

    #[test]
    fn a_killed_process_frees_its_lease() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lease::tests::holder_process", "--nocapture"])
            .env(HOLD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let held = lines.map_while(Result::ok).any(|line| line == "holding");
        assert!(held, "the other process never took the lease");
        assert!(Lease::try_take(&path).unwrap().is_none());
        holder.kill().unwrap(); // SIGKILL: it cannot tidy up.
        holder.wait().unwrap();
        assert!(path.exists(), "the file stays behind");
        assert!(
            Lease::try_take(&path).unwrap().is_some(),
            "but its lock does not"
        );
    }
}
