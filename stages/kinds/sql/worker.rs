//! Threads on which polars computes alone.
//!
//! polars sums floats in parallel, in an order that differs from run to run. On a thread of
//! ours that forbids it to use its pool, it works on that thread only; several queries still
//! run in parallel. The callers are rayon's threads, on which polars could not open its
//! one-thread pool, so work is handed over. Threads are kept, since each costs a pool.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use polars_async::executor::ALLOW_RAYON_THREADS;

type Job = Box<dyn FnOnce() + Send>;

/// Workers that wait for a job.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Why there is no result.
#[derive(Debug, PartialEq)]
pub enum Gone {
    /// The work panicked, with this message.
    Panicked(String),
    /// The user wants to stop. The thread is left to itself: polars cannot be interrupted.
    Stopped,
}

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Does the work on a separate thread and waits for it. A panic becomes its message.
pub fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    stopped: impl Fn() -> bool,
) -> Result<T, Gone> {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let waiting = idle().pop();
    let worker = match waiting {
        Some(worker) => worker,
        None => spawn().map_err(|e| Gone::Panicked(format!("cannot start a thread: {e}")))?,
    };
    let (done, result) = channel();
    let job = move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let ended = || Gone::Panicked("its thread ended".to_owned());
    worker.send(Box::new(job)).map_err(|_| ended())?;
    let outcome = loop {
        match result.recv_timeout(LOOK) {
            Ok(outcome) => break outcome,
            Err(RecvTimeoutError::Timeout) if stopped() => return Err(Gone::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
        }
    };
    match outcome {
        Ok(value) => {
            idle().push(worker);
            Ok(value)
        }
        // The worker is dropped, which ends its thread: who knows what state it is in.
        Err(panic) => Err(Gone::Panicked(panic_message(&*panic))),
    }
}

fn spawn() -> std::io::Result<Sender<Job>> {
    let (jobs, inbox) = channel::<Job>();
    let builder = thread::Builder::new().name("ablate-sql".into());
    // polars recurses through expressions, and unoptimised it has deep frames. `query` refuses
    // what would not fit. Memory is taken only as it is touched.
    builder.stack_size(512 << 20).spawn(move || {
        ALLOW_RAYON_THREADS.set(false);
        inbox.into_iter().for_each(|job| job());
    })?;
    Ok(jobs)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polars_sees_one_thread_whoever_asks() {
        let threads = || {
            run(
                || polars_core::runtime::RAYON.current_num_threads(),
                || false,
            )
            .unwrap()
        };
        assert_eq!(threads(), 1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(8)
            .build()
            .unwrap();
        assert_eq!(pool.install(threads), 1);
    }

    #[test]
    fn a_panic_is_a_message_and_the_next_job_works() {
        assert_eq!(
            run(|| -> u8 { panic!("no {}", "way") }, || false),
            Err(Gone::Panicked("no way".to_owned()))
        );
        assert_eq!(run(|| 1, || false), Ok(1));
        let slow = || thread::sleep(Duration::from_secs(30));
        assert_eq!(run(slow, || true), Err(Gone::Stopped));
    }
}
