//! Threads on which polars computes alone.
//!
//! polars sums floats in parallel, in an order that differs from run to run. On a thread of
//! ours that forbids it to use its pool, it works on that thread only; several queries still
//! run side by side. The callers are rayon's threads, on which polars could not open its
//! one-thread pool, so work is handed over. Threads are kept, since each costs a pool.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use polars_async::executor::ALLOW_RAYON_THREADS;

type Job = Box<dyn FnOnce() + Send>;

/// Workers that wait for a job.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Does the work on a thread of its own and waits for it. A panic becomes its message.
pub fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let waiting = idle().pop();
    let worker = match waiting {
        Some(worker) => worker,
        None => spawn().map_err(|e| format!("cannot start a thread: {e}"))?,
    };
    let (done, result) = channel();
    let job = move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let gone = |_| "its thread ended".to_owned();
    worker
        .send(Box::new(job))
        .map_err(|_| "its thread ended".to_owned())?;
    match result.recv().map_err(gone)? {
        Ok(value) => {
            idle().push(worker);
            Ok(value)
        }
        // The worker is dropped, which ends its thread: who knows what state it is in.
        Err(panic) => Err(panic_message(&*panic)),
    }
}

fn spawn() -> std::io::Result<Sender<Job>> {
    let (jobs, inbox) = channel::<Job>();
    let builder = thread::Builder::new().name("ablate-sql".into());
    // Unoptimised polars has deep frames.
    builder.stack_size(16 << 20).spawn(move || {
        ALLOW_RAYON_THREADS.set(false);
        inbox.into_iter().for_each(|job| job());
    })?;
    Ok(jobs)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polars_sees_one_thread_whoever_asks() {
        let threads = || run(|| polars_core::runtime::RAYON.current_num_threads()).unwrap();
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
            run(|| -> u8 { panic!("no {}", "way") }),
            Err("no way".to_owned())
        );
        assert_eq!(run(|| 1), Ok(1));
    }
}
