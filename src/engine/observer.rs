//! What a running stage reports: progress, counts, its log, and the processes and files that it used.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::checkpoint::CheckpointFile;
use stages::{Usage, Watch};
use store::{RawFile, Work};

/// Takes note of what a stage reports while it runs.
pub(super) struct Observer<'a> {
    stop: &'a AtomicBool,
    on_progress: &'a (dyn Fn(u64, u64) + Sync),
    pub(super) work: Mutex<Work>,
    pub(super) log: Mutex<String>,
    pub(super) children: Mutex<Usage>,
    pub(super) raw: Mutex<Vec<RawFile>>,
    pub(super) sandbox: Mutex<Option<String>>,
    pub(super) resumed: Mutex<Option<u32>>,
    checkpoint: Option<&'a CheckpointFile<'a>>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        stop: &'a AtomicBool,
        on_progress: &'a (dyn Fn(u64, u64) + Sync),
        checkpoint: Option<&'a CheckpointFile<'a>>,
    ) -> Observer<'a> {
        Observer {
            stop,
            on_progress,
            work: Mutex::default(),
            log: Mutex::default(),
            children: Mutex::default(),
            raw: Mutex::default(),
            sandbox: Mutex::default(),
            resumed: Mutex::default(),
            checkpoint,
        }
    }
}

impl Watch for Observer<'_> {
    fn progress(&self, done: u64, total: u64) {
        (self.on_progress)(done, total);
    }

    fn work(&self, unit: &'static str, amount: u64) {
        if let Ok(mut work) = self.work.lock() {
            let sum = work.entry(unit.to_owned()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    fn log(&self, line: &str) {
        // A log is for people. One that never ends must not fill the database.
        const MOST: usize = 1 << 20;
        if let Ok(mut log) = self.log.lock()
            && log.len() < MOST
        {
            log.push_str(line);
            if !line.ends_with('\n') {
                log.push('\n');
            }
        }
    }

    fn raw(&self, file: RawFile) {
        if let Ok(mut raw) = self.raw.lock() {
            raw.push(file);
        }
    }

    fn sandbox(&self, how: &str) {
        if let Ok(mut sandbox) = self.sandbox.lock() {
            *sandbox = Some(how.to_owned());
        }
    }

    fn checkpoint(&self) -> Option<Vec<u8>> {
        self.checkpoint?.find()
    }

    fn checkpoint_due(&self) -> bool {
        self.checkpoint.is_some_and(CheckpointFile::is_due)
    }

    fn save_checkpoint(&self, bytes: &[u8]) {
        if let Some(Err(error)) = self.checkpoint.map(|file| file.save(bytes)) {
            self.log(&format!("a checkpoint could not be saved: {error}"));
        }
    }

    fn resumed(&self, times: u32) {
        if let Ok(mut resumed) = self.resumed.lock() {
            *resumed = Some(times);
        }
    }

    fn child(&self, usage: Usage) {
        if let Ok(mut sum) = self.children.lock() {
            sum.cpu += usage.cpu;
            sum.peak_memory = sum.peak_memory.max(usage.peak_memory);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
