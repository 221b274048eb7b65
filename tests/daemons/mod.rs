//! Real servers on loopback that tests and benches start: they end with whoever started them.
//! Knows nothing of `ablate`.

pub mod azurite;
pub mod moto;
pub mod seaweed;
pub mod slurm;

use std::process::Command;
use std::time::{Duration, Instant};

/// Waits for something that other processes do, for a minute at most.
pub fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that the kernel ends with the thread that starts it, however that ends: a server that outlived a killed
/// test would be in the way of the next one. Where there is no `setpriv` only the test itself ends it.
pub fn ends_with_this_thread(program: &str) -> Command {
    let asked = Command::new("setpriv").arg("--version").output();
    match asked.is_ok_and(|answer| answer.status.success()) {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", program]);
            command
        }
        false => Command::new(program),
    }
}
