//! Waits for a child and learns what it used: the system call `wait4`, which the standard library
//! does not offer. It counts the child and every descendant that was waited for.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("this bench measures memory and CPU time as 64-bit Linux reports them");

use std::ffi::{c_int, c_long};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// How a child ended and what it used.
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// User and system time.
    pub cpu: Duration,
    /// The most memory that one of its processes had, in bytes.
    pub peak: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Time {
    seconds: c_long,
    micros: c_long,
}

/// `struct rusage` as 64-bit Linux has it.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: Time,
    system: Time,
    peak_kib: c_long,
    /// Thirteen more counters, and the sixteen that one C library keeps in reserve.
    rest: [c_long; 29],
}

unsafe extern "C" {
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
}

/// Waits for the child to end. Takes it, because after this its number may name another process.
pub fn wait(child: Child) -> io::Result<Ended> {
    let pid = c_int::try_from(child.id()).expect("process numbers are small");
    let mut status = 0;
    let mut usage = Usage::default();
    loop {
        // SAFETY: both pointers are to values that outlive the call, `Usage` is at least as large
        // as what the system writes, and any bytes are valid in it.
        let answer = unsafe { wait4(pid, &mut status, 0, &mut usage) };
        if answer == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        cpu: duration(usage.user) + duration(usage.system),
        peak: usage.peak_kib.unsigned_abs() * 1024,
    })
}

fn duration(time: Time) -> Duration {
    Duration::from_secs(time.seconds.unsigned_abs())
        + Duration::from_micros(time.micros.unsigned_abs())
}
