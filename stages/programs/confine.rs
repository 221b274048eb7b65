//! Keeps a program to what its stage declares: it may read its files, its inputs, its environments,
//! itself and system folders, write to its own folders, and use no network. On Linux, by Landlock and
//! a network namespace; the provenance says what could not be closed.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};

use super::cgroup::Groups;
use super::enter::{self, Entry};
use super::sandbox::Sandbox;
use super::system;

/// Whether programs are confined in this process: the command line decides.
static CONFINED: AtomicBool = AtomicBool::new(true);

/// Lets programs read and write whatever the user may.
pub fn disable_sandbox() {
    CONFINED.store(false, Ordering::Relaxed);
}

/// What a program may touch and use.
pub struct Rules {
    /// What it may read and run.
    read: Vec<PathBuf>,
    /// Where it may also write.
    write: Vec<PathBuf>,
    /// Whether it may use the network.
    network: bool,
    /// The most bytes of data of a process.
    memory: u64,
    /// The most processes.
    processes: u64,
}

impl Rules {
    /// The rules of a stage whose program is started by these files.
    pub fn of(sandbox: &Sandbox, program: &[PathBuf]) -> Rules {
        let mut read = system::folders(sandbox.pipeline.as_deref());
        read.push(sandbox.input.clone());
        read.extend(program.iter().cloned());
        read.extend(sandbox.environments.values().cloned());
        let mut write: Vec<PathBuf> = system::DEVICES.iter().map(PathBuf::from).collect();
        write.extend(sandbox.own.iter().chain(&sandbox.devices).cloned());
        Rules {
            read,
            write,
            network: sandbox.limits.network,
            memory: sandbox.limits.memory,
            processes: sandbox.limits.processes,
        }
    }
}

/// Starts a program, confined if this process confines programs and the kernel can. The second
/// value says how, for the provenance.
pub fn spawn(
    command: impl Fn() -> io::Result<Command>,
    rules: &Rules,
    groups: &Groups,
) -> (io::Result<Child>, String) {
    static NO_NAMESPACE: AtomicBool = AtomicBool::new(false);
    let confined = CONFINED.load(Ordering::Relaxed);
    let alone = confined && !rules.network && !NO_NAMESPACE.load(Ordering::Relaxed);
    let (child, said) = attempt(command(), rules, groups, confined, alone);
    match said {
        Some(enter::UNUSABLE) => {
            // A kernel that lets us into a namespace and then refuses to let us work there.
            NO_NAMESPACE.store(true, Ordering::Relaxed);
            let (child, said) = attempt(command(), rules, groups, confined, false);
            (child, describe(rules, confined, said))
        }
        said => (child, describe(rules, confined, said)),
    }
}

/// Starts it once, and what its child said about its network before it became the program.
fn attempt(
    command: io::Result<Command>,
    rules: &Rules,
    groups: &Groups,
    confined: bool,
    own_network: bool,
) -> (io::Result<Child>, Option<u8>) {
    let start = || -> io::Result<(io::Result<Child>, Option<u8>)> {
        let mut command = command?;
        let (mut said, report) = io::pipe()?;
        let ruleset = |tcp: bool| match confined && version() > 0 {
            true => ruleset(rules, tcp).map_err(io::Error::other),
            false => Ok(None),
        };
        let entry = Entry {
            own_network,
            // With a network of its own a program may talk to itself over it.
            rules: [ruleset(false)?, ruleset(!rules.network)?],
            memory: rules.memory,
            processes: rules.processes,
            groups: groups.entries(),
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            report,
        };
        enter::prepare(&mut command, entry);
        let child = command.spawn();
        // It holds the other end of the pipe, and reading would wait for more.
        drop(command);
        let mut byte = [0];
        let said = said.read_exact(&mut byte).ok().map(|()| byte[0]);
        Ok((child, said))
    };
    start().unwrap_or_else(|error| (Err(error), None))
}

/// The kernel's rules for files, signals and, if it is to be closed by them, TCP.
fn ruleset(rules: &Rules, tcp: bool) -> Result<Option<OwnedFd>, RulesetError> {
    let (read, write) = (AccessFs::from_read(FILES), AccessFs::from_write(FILES));
    // Of what newer kernels know: sockets in the file system, which are doors to other programs.
    let all: BitFlags<AccessFs> = read | write | AccessFs::ResolveUnix;
    let mut ruleset = Ruleset::default()
        .handle_access(all)?
        .scope(Scope::from_all(ABI::V6))?;
    if tcp {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let ruleset = ruleset
        .create()?
        .add_rules(path_beneath_rules(&rules.read, read))?
        .add_rules(path_beneath_rules(&rules.write, all))?;
    Ok(ruleset.into())
}

/// What kernels from 6.2 on know of files; older ones keep what they can.
const FILES: ABI = ABI::V3;

/// The kernel's version of Landlock.
fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(enter::landlock_version)
}

/// How a program was confined, in words: first files, then what is open that should not be.
fn describe(rules: &Rules, confined: bool, said: Option<u8>) -> String {
    if !confined {
        return "none (--no-sandbox)".to_owned();
    }
    how(version(), said == Some(enter::OWN_NETWORK), rules.network)
}

fn how(version: u32, own_network: bool, asked: bool) -> String {
    let files = match version {
        0 => "none (this kernel has no Landlock)",
        1 | 2 => "landlock, as far as this kernel knows it",
        _ => "landlock",
    };
    let network = match (asked, own_network, version) {
        (true, ..) => "network open (network = true)",
        (false, true, _) => "network closed",
        (false, false, 4..) => "network open but for TCP (no network namespace here)",
        (false, false, _) => "network open (neither a network namespace nor Landlock 4 here)",
    };
    let signals = match version {
        6.. => "",
        _ => ", signals open (Landlock 6 would close them)",
    };
    format!("{files}, {network}{signals}")
}

/// The path that a program says it was refused, in what it printed.
pub fn refused(printed: &str) -> Option<String> {
    let mut lines = printed.lines().rev();
    let line = lines.find(|line| {
        let line = line.to_lowercase();
        line.contains("permission denied") || line.contains("permissionerror")
    })?;
    let cuts = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | ',');
    let mut words = line
        .split(cuts)
        .map(|word| word.trim_end_matches([':', ';']));
    let path = words.rfind(|word| word.starts_with('/'));
    Some(path.unwrap_or("something").to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::{Groups, Rules, attempt, enter, how, refused, version};

    /// Where there is no network namespace.
    #[test]
    fn landlock_alone_closes_tcp() {
        let bash = PathBuf::from("/usr/bin/bash");
        if version() < 4 || !bash.is_file() {
            println!("skipped: no Landlock 4, or no bash");
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connects = |network: bool| {
            let rules = Rules {
                read: ["/usr", "/lib", "/lib64", "/etc", "/bin"]
                    .map(PathBuf::from)
                    .to_vec(),
                write: vec![PathBuf::from("/dev/null")],
                network,
                memory: u64::MAX,
                processes: u64::MAX,
            };
            let mut command = Command::new(&bash);
            command.args(["-c", &format!(": 3<>/dev/tcp/127.0.0.1/{port}")]);
            command.stderr(std::process::Stdio::null());
            let (child, said) = attempt(Ok(command), &rules, &Groups::default(), true, false);
            assert_eq!(said, Some(enter::SHARED_NETWORK));
            child.unwrap().wait().unwrap().success()
        };
        assert!(!connects(false), "TCP is open");
        assert!(connects(true), "TCP is closed though it was asked for");
    }

    #[test]
    fn what_could_not_be_closed_is_said() {
        assert_eq!(how(7, true, false), "landlock, network closed");
        assert_eq!(
            how(6, false, true),
            "landlock, network open (network = true)"
        );
        assert_eq!(
            how(4, false, false),
            "landlock, network open but for TCP (no network namespace here), \
             signals open (Landlock 6 would close them)"
        );
        assert_eq!(
            how(0, false, false),
            "none (this kernel has no Landlock), \
             network open (neither a network namespace nor Landlock 4 here), \
             signals open (Landlock 6 would close them)"
        );
    }

    #[test]
    fn the_refused_path_is_found_in_what_is_printed() {
        let cases = [
            ("cat: /data/x.csv: Permission denied", Some("/data/x.csv")),
            (
                "sh: 1: cannot create /data/y: Permission denied",
                Some("/data/y"),
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/data/x.csv'",
                Some("/data/x.csv"),
            ),
            ("all good", None),
        ];
        for (printed, expected) in cases {
            assert_eq!(refused(printed).as_deref(), expected, "{printed}");
        }
    }
}
