//! Processes that left a program's group (`setsid`) and live on: found by their environment, in
//! which the folder of their stage stands. What has emptied its environment is not found.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Kills what is left of the stage with this output folder, again and again, because a process
/// may start another before it dies. Outside Linux there is nobody to ask.
pub fn kill(out: &Path) {
    for _ in 0..16 {
        let found = found(out);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn found(out: &Path) -> Vec<Pid> {
    let marker = [b"ABLATE_OUT=", out.as_os_str().as_bytes()].concat();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = Pid::from_raw(number(&entry.file_name())?)?;
            // Other users' are closed to us, and a dead one's is empty.
            let variables = std::fs::read(entry.path().join("environ")).ok()?;
            let mut variables = variables.split(|byte| *byte == 0);
            variables.any(|one| one == marker).then_some(pid)
        })
        .collect()
}

fn number(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}
