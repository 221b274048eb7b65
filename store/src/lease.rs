//! Leases: the right to make the result of one key, held by one worker of one process.
//! Knows nothing of what a key is beyond its digest.
//!
//! All leases of a store are locks on single bytes of one file, each at an offset drawn from its
//! key. The kernel frees them when their process dies, however it dies. One file, rather than one
//! for each key: a lease then costs two system calls, and neither a file nor a handle.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::digest::Digest;
use crate::error::{At, Error};
use crate::files::disk;
use crate::mutex::lock;

/// The right to make one result. Given back when dropped.
#[derive(Debug)]
pub struct Lease {
    leases: Arc<Leases>,
    offset: u64,
}

/// The leases of one store, as one process sees them.
#[derive(Debug)]
pub(crate) struct Leases {
    file: File,
    path: PathBuf,
    /// What this process holds: the kernel keeps processes apart, this set keeps threads apart.
    held: Mutex<HashSet<u64>>,
}

impl Leases {
    pub(crate) fn open(path: &Path) -> Result<Arc<Leases>, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        Ok(Arc::new(Leases {
            file: disk::open(&options, path).at("open the lock file", path)?,
            path: path.to_owned(),
            held: Mutex::default(),
        }))
    }

    /// Whether another process, or another handle of the file, holds any lease.
    pub(crate) fn any_held(&self) -> Result<bool, Error> {
        // SAFETY: as in `set_lock`; here the kernel also writes to `range`, which is ours.
        let held = unsafe {
            let mut range: libc::flock = std::mem::zeroed();
            range.l_type = libc::F_WRLCK as libc::c_short;
            range.l_whence = libc::SEEK_SET as libc::c_short;
            match libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(range.l_type != libc::F_UNLCK as libc::c_short),
            }
        };
        held.at("look at the locks of", &self.path)
    }

    /// Whether anybody holds the lease of this key. Takes no lock, so it disturbs no one.
    pub(crate) fn is_held(&self, key: &Digest) -> Result<bool, Error> {
        let offset = offset(key);
        let held = lock(&self.held);
        if held.contains(&offset) {
            return Ok(true);
        }
        let mut range = byte(offset, libc::F_WRLCK);
        // SAFETY: as in `set_lock`; here the kernel also writes to `range`, which is ours.
        let answer = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) };
        match answer {
            -1 => Err(io::Error::last_os_error()).at("look at the locks of", &self.path),
            _ => Ok(range.l_type != libc::F_UNLCK as libc::c_short),
        }
    }

    /// Takes the lease of this key, or `None` when somebody has it.
    pub(crate) fn try_take(self: &Arc<Self>, key: &Digest) -> Result<Option<Lease>, Error> {
        let offset = offset(key);
        let mut held = lock(&self.held);
        if held.contains(&offset) {
            return Ok(None);
        }
        match set_lock(&self.file, offset, libc::F_WRLCK) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // POSIX lets a system say this instead.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error).at("lock", &self.path),
        }
        held.insert(offset);
        let leases = self.clone();
        Ok(Some(Lease { leases, offset }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut held = lock(&self.leases.held);
        // Unlocking a range that we hold does not fail; and the lock ends with the process anyway.
        let _ = set_lock(&self.leases.file, self.offset, libc::F_UNLCK);
        held.remove(&self.offset);
    }
}

/// The byte that stands for this key. Two keys that share one would only wait for each other,
/// and among 2^62 bytes they do not meet.
fn offset(key: &Digest) -> u64 {
    let hex = &key.to_string()[..16];
    u64::from_str_radix(hex, 16).expect("a digest is hexadecimal") >> 2
}

/// Locks or unlocks one byte without waiting. The lock belongs to the open file, not to the
/// process, so that closing some other handle of the same file does not drop it.
fn set_lock(file: &File, offset: u64, kind: libc::c_int) -> io::Result<()> {
    let range = byte(offset, kind);
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the kernel only reads
    // `range`, which outlives the call. The standard library can lock whole files only.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) };
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// One byte of the file, as the kernel wants to be told.
fn byte(offset: u64, kind: libc::c_int) -> libc::flock {
    // SAFETY: `flock` is plain numbers, for which all zeros is a valid value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = offset as libc::off_t;
    range.l_len = 1;
    range
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn key() -> Digest {
        Digest::of(b"key")
    }

    #[test]
    fn one_holder_at_a_time_and_free_after_drop() {
        let dir = tempfile::tempdir().unwrap();
        let leases = Leases::open(&dir.path().join("keys")).unwrap();
        // A second handle sees what another process would see.
        let others = Leases::open(&dir.path().join("keys")).unwrap();
        let lease = leases.try_take(&key()).unwrap().expect("nobody has it");
        assert!(leases.try_take(&key()).unwrap().is_none());
        assert!(others.try_take(&key()).unwrap().is_none());
        assert!(others.try_take(&Digest::of(b"other")).unwrap().is_some());
        for seen in [&leases, &others] {
            assert!(seen.is_held(&key()).unwrap());
            assert!(!seen.is_held(&Digest::of(b"other")).unwrap());
        }
        drop(lease);
        assert!(!leases.is_held(&key()).unwrap() && !others.is_held(&key()).unwrap());
        assert!(others.try_take(&key()).unwrap().is_some());
        assert!(leases.try_take(&key()).unwrap().is_some());
    }

    #[test]
    fn closing_another_handle_drops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let leases = Leases::open(&path).unwrap();
        let _lease = leases.try_take(&key()).unwrap().unwrap();
        drop(File::open(&path).unwrap());
        let others = Leases::open(&path).unwrap();
        assert!(others.try_take(&key()).unwrap().is_none());
    }

    #[test]
    fn many_threads_never_hold_it_together() {
        let dir = tempfile::tempdir().unwrap();
        let leases = [(); 2].map(|()| Leases::open(&dir.path().join("keys")).unwrap());
        let (inside, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let (leases, inside, taken) = (&leases[worker % 2], &inside, &taken);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        if let Some(lease) = leases.try_take(&key()).unwrap() {
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
            let leases = Leases::open(Path::new(&path)).unwrap();
            let _lease = leases.try_take(&key()).unwrap().unwrap();
            println!("\nholding");
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
    }

    #[test]
    fn a_killed_process_frees_its_lease() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let leases = Leases::open(&path).unwrap();
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lease::tests::holder_process", "--nocapture"])
            .env(HOLD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let held = lines.map_while(Result::ok).any(|line| line == "holding");
        assert!(held, "the other process never took the lease");
        assert!(leases.try_take(&key()).unwrap().is_none());
        holder.kill().unwrap(); // SIGKILL: it cannot tidy up.
        holder.wait().unwrap();
        assert!(leases.try_take(&key()).unwrap().is_some());
    }
}
