//! Waits for a child and learns what it and every descendant that was waited for have used.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use wait4::Wait4;

/// How a child ended and what it used.
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// User and system time.
    pub cpu: Duration,
    /// The most memory that one of its processes had, in bytes.
    pub peak: u64,
}

/// Waits for the child to end. Takes it, because after this its number may name another process.
pub fn wait(child: Child) -> io::Result<Ended> {
    let ended = child.wait4()?;
    Ok(Ended {
        status: ended.status,
        cpu: ended.rusage.utime + ended.rusage.stime,
        peak: ended.rusage.maxrss,
    })
}
