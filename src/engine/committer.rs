//! Writes finished executions while the next ones run. Whatever has arrived by the time the
//! last batch is on disk becomes the next batch, so that the cost of syncing is shared by
//! many small stages and a lone stage does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use store::{Error, Finished, Store, Use};

/// The end that the scheduler holds. Dropping it lets the thread finish.
pub struct Committer {
    queue: Sender<Entry>,
    failed: Arc<AtomicBool>,
}

/// An execution with its use, or uses alone.
struct Entry {
    finished: Option<Finished>,
    uses: Vec<Use>,
}

/// The most executions in one transaction.
const BATCH: usize = 512;

/// Starts the thread that writes. It returns whether everything was written.
pub fn start<'scope>(
    threads: &'scope Scope<'scope, '_>,
    store: &'scope Store,
) -> (Committer, ScopedJoinHandle<'scope, Result<(), Error>>) {
    let (queue, inbox) = channel();
    let failed = Arc::new(AtomicBool::new(false));
    let flag = failed.clone();
    let thread = threads.spawn(move || {
        let result = write(store, &inbox);
        flag.store(result.is_err(), Ordering::Relaxed);
        result
    });
    (Committer { queue, failed }, thread)
}

impl Committer {
    /// Writes an execution and what the run made of it.
    pub fn send(&self, finished: Finished, used: Use) {
        self.queue_up(Some(finished), vec![used]);
    }

    /// Writes what the run made of instances that were not executed.
    pub fn send_uses(&self, uses: Vec<Use>) {
        self.queue_up(None, uses);
    }

    /// Whether writing has failed: then nothing more is worth running.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn queue_up(&self, finished: Option<Finished>, uses: Vec<Use>) {
        // A thread that has failed no longer receives; its error is the run's result.
        let _ = self.queue.send(Entry { finished, uses });
    }
}

fn write(store: &Store, inbox: &Receiver<Entry>) -> Result<(), Error> {
    while let Ok(first) = inbox.recv() {
        let mut finished = Vec::new();
        let mut uses = Vec::new();
        for entry in std::iter::once(first).chain(inbox.try_iter().take(BATCH)) {
            finished.extend(entry.finished);
            uses.extend(entry.uses);
        }
        store.commit(finished, &uses)?;
    }
    Ok(())
}
