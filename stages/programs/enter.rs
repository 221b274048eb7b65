//! The last steps of a child process before its program starts: a session of its own, a network of
//! its own, limits, no descriptors but the three, and the kernel's rules for files.
//!
//! Between `fork` and `exec` only system calls are allowed: another thread of the parent may have
//! held any lock, the allocator's too. So everything is prepared before, as plain numbers and bytes.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What a child does before it becomes the program.
pub struct Entry {
    /// Whether to try to enter a new network namespace.
    pub own_network: bool,
    /// The rules with a network namespace, and without.
    pub rules: [Option<OwnedFd>; 2],
    /// The most bytes of data of a process.
    pub memory: u64,
    /// The most processes and threads, where they can be counted for this program alone.
    pub processes: u64,
    /// The files by which it enters its control groups.
    pub groups: Vec<File>,
    /// The process that starts it.
    pub parent: i32,
    /// Takes one of the bytes below once everything is done.
    pub report: PipeWriter,
}

/// The child has a network of its own.
pub const OWN_NETWORK: u8 = b'n';
/// The child shares the network of this machine.
pub const SHARED_NETWORK: u8 = b's';
/// The child is in a namespace in which it cannot work: to be tried again without.
pub const UNUSABLE: u8 = b'u';

/// Lets the command's child take these steps.
pub fn prepare(command: &mut Command, entry: Entry) {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let own = |id: u32| format!("{id} {id} 1");
    let maps = [
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", own(user.as_raw())),
        (c"/proc/self/gid_map", own(group.as_raw())),
    ];
    // SAFETY: `enter` and what it calls make system calls on memory that is ready, and neither
    // allocate nor lock.
    unsafe {
        command.pre_exec(move || enter(&entry, &maps));
    }
}

type Maps = [(&'static CStr, String); 3];

fn enter(entry: &Entry, maps: &Maps) -> io::Result<()> {
    // SAFETY: system calls that take numbers.
    unsafe {
        // No terminal either: into one, a program could type.
        answer(libc::setsid())?;
    }
    join(&entry.groups);
    let own_network = entry.own_network && unshare_network();
    if own_network && (!write_maps(maps) || !raise_loopback()) {
        say(entry, UNUSABLE);
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    limit(libc::RLIMIT_CORE, 0)?;
    limit(libc::RLIMIT_DATA, entry.memory)?;
    // Outside a namespace of ours the user's other processes would count too.
    if own_network {
        limit(libc::RLIMIT_NPROC, entry.processes)?;
    }
    die_with(entry.parent)?;
    close_descriptors();
    if let Some(rules) = &entry.rules[usize::from(!own_network)] {
        obey(rules)?;
    }
    let network = [SHARED_NETWORK, OWN_NETWORK][usize::from(own_network)];
    say(entry, network);
    Ok(())
}

fn answer(value: libc::c_int) -> io::Result<libc::c_int> {
    match value {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Enters the control groups. Where that is refused the limits of single processes remain.
fn join(groups: &[File]) {
    for group in groups {
        // SAFETY: one byte of ours to a descriptor that is open as long as it is borrowed.
        let _ = unsafe { libc::write(group.as_raw_fd(), c"0".as_ptr().cast(), 1) };
    }
}

/// A network without anybody in it. Needs a user namespace, unless the user is root.
fn unshare_network() -> bool {
    // SAFETY: the process has one thread, as every child has after `fork`, and takes a flag.
    unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) == 0 }
}

/// In a namespace of its own the process is nobody until it is told who it is: itself.
fn write_maps(maps: &Maps) -> bool {
    maps.iter().all(|(path, text)| {
        // SAFETY: the path ends with a zero, the text's pointer and length are its own, and the
        // descriptor was just opened.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file == -1 {
                return false;
            }
            let written = libc::write(file, text.as_ptr().cast(), text.len());
            libc::close(file);
            usize::try_from(written) == Ok(text.len())
        }
    })
}

/// Lets the program talk to itself: many do, by 127.0.0.1.
fn raise_loopback() -> bool {
    // SAFETY: `ifreq` is plain numbers, for which all zeros is a valid value; the kernel reads and
    // writes it while it is ours, and the descriptor was just opened.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket == -1 {
            return false;
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let raised = libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &request) == 0;
        libc::close(socket);
        raised
    }
}

/// Lowers a limit. One that is lower already stays.
fn limit(what: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes to `now`, then reads it, and both are ours.
    unsafe {
        answer(libc::getrlimit(what, &mut now))?;
        now.rlim_max = now.rlim_max.min(most);
        now.rlim_cur = now.rlim_cur.min(now.rlim_max);
        answer(libc::setrlimit(what, &now))?;
    }
    Ok(())
}

/// Ends the program should the thread that waits for it end, as it does when we are killed. Not
/// before the namespace: who enters one forgets this.
fn die_with(parent: i32) -> io::Result<()> {
    // SAFETY: system calls that take numbers.
    unsafe {
        answer(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // It may have ended already.
        match libc::getppid() == parent {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }
}

/// Whatever is open besides the three ends when the program starts: what the shell left open in
/// this process is not the program's. Not at once, for `report` is still needed.
fn close_descriptors() {
    // SAFETY: system calls that take numbers. They close nothing now.
    unsafe {
        let flag = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flag) == 0 {
            return;
        }
        // Kernels before 5.11.
        for descriptor in 3..4096 {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Obeys Landlock's rules from here on, with all that is started.
fn obey(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: system calls that take numbers; the descriptor is open as long as it is borrowed.
    unsafe {
        answer(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        match libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn say(entry: &Entry, what: u8) {
    // SAFETY: one byte of ours to a descriptor that is open as long as the entry lives.
    let _ = unsafe { libc::write(entry.report.as_raw_fd(), (&raw const what).cast(), 1) };
}

/// The version of Landlock that this kernel has; 0 for none.
pub fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no memory and answers with a number.
    let found = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(found).unwrap_or(0)
}
