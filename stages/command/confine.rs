//! Keeps a program to what its stage declares: it may read its files, its inputs, programs and
//! system folders, and write to its own folders. On Linux, by Landlock; elsewhere not at all, and
//! the provenance says so.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    path_beneath_rules,
};

use super::sandbox::Sandbox;

/// Whether programs are confined in this process: the command line decides.
static CONFINED: AtomicBool = AtomicBool::new(true);

/// Lets programs read and write whatever the user may.
pub fn let_loose() {
    CONFINED.store(false, Ordering::Relaxed);
}

/// Where programs and what they need lie on most systems.
const SYSTEM: &[&str] = &[
    "/bin", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin",
    "/snap", "/sys", "/usr",
];

/// Devices that anybody may write to.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/shm",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// What a confined program may touch: read and run, or also write.
pub struct Rules {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl Rules {
    pub fn of(sandbox: &Sandbox) -> Rules {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        read.push(sandbox.input.clone());
        let path = sandbox.env.get("PATH").cloned().unwrap_or_default();
        read.extend(std::env::split_paths(&path).flat_map(|folder| program_folders(&folder)));
        let mut write: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        write.extend(sandbox.own.iter().cloned());
        Rules { read, write }
    }
}

/// A folder of programs, and what lies beside it: `/x/bin` comes with `/x/lib`. Never a home, the
/// folder that we are in, or what is above them.
fn program_folders(folder: &Path) -> Vec<PathBuf> {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // A PATH must not open what a program did not declare: not the folder that we are in, nor one
    // above it, nor a file.
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let opens = |folder: &Path| here.as_ref().is_ok_and(|here| here.starts_with(folder));
    if folder.is_relative() || !real.is_dir() || opens(&real) {
        return Vec::new();
    }
    // Readable already, with all that lies below.
    if SYSTEM.iter().any(|system| real.starts_with(system)) {
        return Vec::new();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let beside = |folder: &Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        let parent = folder
            .parent()
            .filter(|_| matches!(name, Some("bin" | "sbin" | "shims")))?;
        let too_wide = parent.parent().is_none()
            || opens(parent)
            || home.as_ref().is_some_and(|home| home.starts_with(parent));
        (!too_wide).then(|| parent.to_owned())
    };
    // The programs of a virtual environment are links to an interpreter somewhere else.
    let linked = std::fs::read_dir(&real).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        let target = kind
            .is_symlink()
            .then(|| entry.path().canonicalize().ok())??;
        target.parent().and_then(beside)
    });
    let mut all: Vec<PathBuf> = linked.collect();
    all.extend(beside(folder));
    all.extend(beside(&real));
    all.extend([folder.to_owned(), real]);
    all.sort();
    all.dedup();
    all
}

/// Starts a program, confined if this process confines programs and the kernel can. The second
/// value says how, for the provenance.
pub fn spawn(command: &mut Command, rules: &Rules) -> (io::Result<Child>, String) {
    if !CONFINED.load(Ordering::Relaxed) {
        return (command.spawn(), "none (--no-sandbox)".to_owned());
    }
    // A thread confines itself for good, and what it starts inherits that.
    std::thread::scope(|threads| {
        let confined = threads.spawn(|| match confine(rules) {
            Ok(how) => (command.spawn(), how),
            Err(error) => {
                let how = format!("none ({error})");
                (command.spawn(), how)
            }
        });
        confined.join().expect("starting a program does not panic")
    })
}

fn confine(rules: &Rules) -> Result<String, landlock::RulesetError> {
    // What kernels from 6.2 on know; older ones keep what they can.
    let abi = ABI::V3;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(&rules.read, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(&rules.write, AccessFs::from_all(abi)))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => "landlock".to_owned(),
        RulesetStatus::PartiallyEnforced => "landlock, as far as this kernel knows it".to_owned(),
        RulesetStatus::NotEnforced => "none (this kernel has no Landlock)".to_owned(),
    })
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
    use super::refused;

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
