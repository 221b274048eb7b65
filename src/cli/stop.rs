//! Signals: the first Ctrl-C asks stages to stop, the second ends the program; USR1 asks them to save checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// Set by the first Ctrl-C, termination request or closed terminal. The second ends the program
/// at once, and the programs that it has started with it.
pub fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).expect("these can be caught");
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if raised.swap(true, Ordering::Relaxed) {
                stages::programs::kill_all();
                std::process::exit(130);
            }
            stages::programs::stop_asking();
        }
    });
    flag
}

/// How often SIGUSR1 has come: cluster schedulers send it before a time limit.
pub fn checkpoint_requests() -> Arc<AtomicU64> {
    let requests = Arc::new(AtomicU64::new(0));
    let counted = requests.clone();
    let mut signals = Signals::new([SIGUSR1]).expect("this can be caught");
    std::thread::spawn(move || {
        for _ in signals.forever() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    requests
}
