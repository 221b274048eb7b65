//! Where a running stage saves how far it has come, and when. A checkpoint is named by the key, so that only an
//! execution of the same code, parameters and inputs ever finds it. It is part of no result: it can be deleted at any
//! time. Knows nothing of what is in it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::Digest;

/// When checkpoints are saved.
#[derive(Debug)]
pub struct CheckpointTimes {
    /// How long after the last one.
    pub every: Duration,
    /// How often somebody has asked for one (SIGUSR1): a schedule that ends the job soon, say.
    pub requests: std::sync::Arc<AtomicU64>,
}

/// Whether an execution with this key has left a checkpoint in this folder.
pub fn is_saved(folder: &Path, key: &Digest) -> bool {
    folder.join(key.to_string()).exists()
}

/// The checkpoint of one execution.
pub(super) struct CheckpointFile<'a> {
    path: PathBuf,
    times: &'a CheckpointTimes,
    /// When the last one was saved, and the requests that it answered.
    last: Mutex<(Instant, u64)>,
}

impl CheckpointFile<'_> {
    /// In this folder, under this key.
    pub(super) fn new<'a>(
        folder: &Path,
        key: &Digest,
        times: &'a CheckpointTimes,
    ) -> CheckpointFile<'a> {
        let requests = times.requests.load(Ordering::Relaxed);
        CheckpointFile {
            path: folder.join(key.to_string()),
            times,
            last: Mutex::new((Instant::now(), requests)),
        }
    }

    /// What was saved, if it is whole: the digest of its bytes comes first.
    pub(super) fn find(&self) -> Option<Vec<u8>> {
        let bytes = fs::read(&self.path).ok()?;
        let (digest, body) = bytes.split_at_checked(Digest::of(b"").to_string().len())?;
        let whole = digest == Digest::of(body).to_string().as_bytes();
        whole.then(|| body.to_vec())
    }

    /// Whether it is time for another.
    pub(super) fn is_due(&self) -> bool {
        let Ok(last) = self.last.lock() else {
            return false;
        };
        last.0.elapsed() >= self.times.every
            || self.times.requests.load(Ordering::Relaxed) != last.1
    }

    /// Puts this in place of what was saved before: whole or not at all.
    pub(super) fn save(&self, bytes: &[u8]) -> io::Result<()> {
        // Taken before writing: a request that comes meanwhile wants another one.
        let requests = self.times.requests.load(Ordering::Relaxed);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let unfinished = self.unfinished();
        let mut file = fs::File::create(&unfinished)?;
        file.write_all(Digest::of(bytes).to_string().as_bytes())?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(unfinished, &self.path)?;
        if let Ok(mut last) = self.last.lock() {
            *last = (Instant::now(), requests);
        }
        Ok(())
    }

    /// The execution has come to its end.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.unfinished());
    }

    /// What is being written. Its name is always the same, so that what a killed execution leaves is overwritten by the
    /// next one; should two ever write at once, the digest tells.
    fn unfinished(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        self.path
            .with_file_name(format!(".{}", name.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(every: Duration) -> CheckpointTimes {
        CheckpointTimes {
            every,
            requests: Default::default(),
        }
    }

    #[test]
    fn what_was_saved_is_found_unless_it_is_damaged_or_of_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let times = times(Duration::from_secs(3600));
        let file = |key: &[u8]| CheckpointFile::new(dir.path(), &Digest::of(key), &times);
        let one = file(b"a");
        assert_eq!(one.find(), None);
        one.save(b"first").unwrap();
        one.save(b"second").unwrap();
        assert_eq!(file(b"a").find().unwrap(), b"second");
        assert_eq!(file(b"b").find(), None);
        let mut bytes = fs::read(&one.path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&one.path, &bytes).unwrap();
        assert_eq!(one.find(), None, "damaged");
        fs::write(&one.path, b"short").unwrap();
        assert_eq!(one.find(), None, "cut");
        // An execution that was killed while it saved.
        fs::write(one.unfinished(), b"half").unwrap();
        one.save(b"third").unwrap();
        assert_eq!(one.find().unwrap(), b"third");
        fs::write(one.unfinished(), b"half").unwrap();
        one.remove();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_is_due_after_a_while_or_when_somebody_asks() {
        let dir = tempfile::tempdir().unwrap();
        let never = times(Duration::from_secs(3600));
        let file = CheckpointFile::new(dir.path(), &Digest::of(b"a"), &never);
        assert!(!file.is_due());
        never.requests.fetch_add(1, Ordering::Relaxed);
        assert!(file.is_due());
        file.save(b"x").unwrap();
        assert!(!file.is_due());
        let always = times(Duration::ZERO);
        assert!(CheckpointFile::new(dir.path(), &Digest::of(b"a"), &always).is_due());
    }
}
