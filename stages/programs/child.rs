//! Runs a program in its own process group, and ends the whole group with it.
//!
//! Whatever happens (success, failure, timeout, Ctrl-C, a panic of ours), when this returns
//! no process of the group is left, nor one that left it, see [`stray`]; [`kill_all`] is for a
//! program that cannot wait for that. Knows nothing of tables.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use wait4::Wait4;

use super::cgroup::Groups;
use super::confine::{self, Rules};
use super::program::Program;
use super::sandbox::Sandbox;
use super::stray;
use crate::{Failure, Usage, Watch};

/// How a program ended.
pub enum End {
    Exited(ExitStatus),
    TimedOut,
    Stopped,
}

/// How long a program may tidy up after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the program to its end.
pub fn run(
    sandbox: &Sandbox,
    program: &Program,
    argv: &[String],
    timeout: Duration,
    watch: &dyn Watch,
) -> Result<(End, Usage), Failure> {
    let started = Instant::now();
    let mut group = Group::spawn(sandbox, program, argv, Channels::Log, watch)?;
    let mut told = started;
    let mut pause = Pause::default();
    let end = loop {
        if group.has_exited()? {
            break None;
        }
        if watch.stopped() {
            break Some(End::Stopped);
        }
        if started.elapsed() >= timeout {
            break Some(End::TimedOut);
        }
        if told.elapsed() >= Duration::from_millis(200) {
            tell_progress(sandbox, watch);
            told = Instant::now();
        }
        pause.sleep();
    };
    if end.is_some() {
        group.terminate()?;
    }
    let (status, usage) = group.finish()?;
    stray::kill(&sandbox.out);
    Ok((end.unwrap_or(End::Exited(status)), usage))
}

/// The groups that are running, for [`kill_all`].
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every running group: for a program that must end at once.
pub fn kill_all() {
    for pid in running().iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Tells how far the program says it is, if it does: `3/10` in a small regular file.
fn tell_progress(sandbox: &Sandbox, watch: &dyn Watch) {
    // Opening a pipe would wait for its writer.
    if !std::fs::symlink_metadata(&sandbox.progress).is_ok_and(|found| found.is_file()) {
        return;
    }
    let mut text = String::new();
    let read =
        File::open(&sandbox.progress).and_then(|file| file.take(64).read_to_string(&mut text));
    let parts = text.trim().split_once('/').filter(|_| read.is_ok());
    let numbers = parts.map(|(done, total)| (done.trim().parse(), total.trim().parse()));
    if let Some((Ok(done), Ok(total))) = numbers {
        watch.progress(done, total);
    }
}

/// "exit code 3", "killed by signal 9".
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "it ended for an unknown reason".to_owned(),
    }
}

/// Waits longer and longer, so that short programs are not slowed and long ones cost nothing.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(Duration::from_micros(300))
    }
}

impl Pause {
    fn sleep(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 5 / 4).min(Duration::from_millis(20));
    }
}

/// Where a program's standard input and output go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// Nothing comes in, and what it prints is its log.
    Log,
    /// Both are pipes to us; only standard error is its log.
    Pipes,
}

/// A running process group, named by its leader.
pub struct Group {
    pid: Pid,
    /// Gone once it is reaped: then its number may belong to somebody else.
    leader: Option<Child>,
    /// Where the kernel counts for it.
    groups: Groups,
}

impl Group {
    /// Starts a program, confined to its sandbox.
    pub fn spawn(
        sandbox: &Sandbox,
        program: &Program,
        argv: &[String],
        channels: Channels,
        watch: &dyn Watch,
    ) -> Result<Group, Failure> {
        let command = || {
            let mut command = match &program.path {
                Some(path) => Command::new(path),
                None => Command::new(&argv[0]),
            };
            // It becomes the leader of a session, and so of a group, before it starts.
            command
                .args(&argv[1..])
                .current_dir(&sandbox.work)
                .env_clear()
                .envs(&sandbox.env)
                // One file for both, so that lines keep the order in which they were printed.
                .stderr(sandbox.log.try_clone()?);
            match channels {
                Channels::Log => command
                    .stdin(Stdio::null())
                    .stdout(sandbox.log.try_clone()?),
                Channels::Pipes => command.stdin(Stdio::piped()).stdout(Stdio::piped()),
            };
            Ok(command)
        };
        let groups = Groups::new(sandbox.limits.memory, sandbox.limits.processes);
        let rules = Rules::of(sandbox, &program.files);
        let (leader, how) = confine::spawn(command, &rules, &groups);
        watch.sandbox(&how);
        let leader = leader.map_err(|e| cannot_start(sandbox, &argv[0], &e))?;
        let pid = Pid::from_child(&leader);
        running().insert(pid.as_raw_nonzero().get());
        Ok(Group {
            pid,
            leader: Some(leader),
            groups,
        })
    }

    /// The pipes to its standard input and from its standard output, once.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        let leader = self.leader.as_mut()?;
        leader.stdin.take().zip(leader.stdout.take())
    }

    /// Whether the leader has ended. It is not reaped yet, so the group keeps its number.
    pub fn has_exited(&self) -> Result<bool, Failure> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(Failure::new(format!("cannot wait for the program: {e}"))),
        }
    }

    /// Asks the group to end, and waits for its leader until the grace is over.
    pub fn terminate(&self) -> Result<(), Failure> {
        let _ = kill_process_group(self.pid, Signal::TERM);
        let asked = Instant::now();
        let mut pause = Pause::default();
        while !self.has_exited()? && asked.elapsed() < GRACE {
            pause.sleep();
        }
        Ok(())
    }

    /// Ends what is left of the group, then reaps the leader.
    pub fn finish(&mut self) -> Result<(ExitStatus, Usage), Failure> {
        let _ = kill_process_group(self.pid, Signal::KILL);
        let leader = self.leader.take().expect("a group is finished once");
        running().remove(&self.pid.as_raw_nonzero().get());
        let ended = leader.wait4();
        let ended = ended.map_err(|e| Failure::new(format!("cannot wait for the program: {e}")))?;
        self.groups.note_kills();
        self.groups.kill();
        // A killed descendant may be in the middle of a write: outputs are read after its end.
        // It stays as a zombie where nothing adopts orphans, hence the limit.
        let killed = Instant::now();
        let mut pause = Pause::default();
        while test_kill_process_group(self.pid).is_ok()
            && killed.elapsed() < Duration::from_millis(200)
        {
            pause.sleep();
        }
        let usage = Usage {
            cpu: ended.rusage.utime + ended.rusage.stime,
            peak_memory: ended.rusage.maxrss,
        };
        Ok((ended.status, usage))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = &mut self.leader {
            running().remove(&self.pid.as_raw_nonzero().get());
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = leader.wait();
        }
    }
}

fn cannot_start(sandbox: &Sandbox, program: &str, error: &std::io::Error) -> Failure {
    let declared = sandbox.work.join(program);
    let help = match error.kind() {
        ErrorKind::NotFound if declared.is_file() && program.contains('/') => {
            "the interpreter in its first line (#!) does not exist".to_owned()
        }
        ErrorKind::NotFound if declared.is_file() => {
            format!("write \"./{program}\" to run a file of the stage")
        }
        ErrorKind::NotFound if program.contains('/') => {
            "programs of your own must be named in `files`".to_owned()
        }
        ErrorKind::NotFound => not_in_path(sandbox, program),
        ErrorKind::PermissionDenied if declared.is_file() => {
            format!("make it executable: chmod +x {program}")
        }
        _ => "is it compiled for this machine?".to_owned(),
    };
    let message = match error.kind() {
        ErrorKind::NotFound => format!("the program `{program}` was not found"),
        _ => format!("the program `{program}` cannot be started: {error}"),
    };
    Failure::new(message).help(help).at("run")
}

/// The folders themselves stay unsaid: failures are stored, and environments never are.
fn not_in_path(sandbox: &Sandbox, program: &str) -> String {
    let path = sandbox.env.get("PATH").cloned().unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let mut programs: Vec<String> = Vec::new();
    for entries in folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
    {
        programs.extend(
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok()),
        );
    }
    let nearest = crate::contract::nearest::nearest(program, programs.iter().map(String::as_str));
    let looked = format!("searched the {} folders in PATH", folders.len());
    match nearest {
        Some(near) => format!("{looked}; did you mean `{near}`?"),
        None => format!(
            "{looked}; install it, or name your own program in `files` and run it as \"./{program}\""
        ),
    }
}
