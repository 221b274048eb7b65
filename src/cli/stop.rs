//! Ctrl-C: the first asks stages to stop, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
        }
    });
    flag
}
