//! The folder in which a program runs, filled with what its stage declares and nothing else.
//! It is removed when the stage ends; should we be killed, the next user of the store removes it.
//! Knows nothing of processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use store::{Digest, Value};

use super::check::{is_name, stays_inside};
use super::environment;
use super::params;
use super::search::{in_order, search_path};
use super::secrets::Secrets;
use super::system;
use crate::{Failure, SourceFile, Task};

/// A fresh folder with `work/`, `in/`, `out/`, `home/`, `tmp/` and `status/`.
pub struct Sandbox {
    /// The program's working folder, with the declared files.
    pub work: PathBuf,
    /// Where it must leave its outputs.
    pub out: PathBuf,
    /// Where what it prints goes. It has no name, so that the program cannot put a pipe or a
    /// link to secrets in its place.
    pub log: File,
    /// Where its inputs are.
    pub input: PathBuf,
    /// The folders that it may write to.
    pub own: Vec<PathBuf>,
    /// Where it may say how far it is: `3/10`.
    pub progress: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, OsString>,
    /// Folders that it may read, by the names that the pipeline gives them.
    pub environments: BTreeMap<String, PathBuf>,
    /// Devices that it may use beside those that any program may.
    pub devices: Vec<PathBuf>,
    /// What must not be kept of what it prints.
    pub secrets: Secrets,
    /// The pipeline's folder, which is closed to it.
    pub pipeline: Option<PathBuf>,
    /// What it may use.
    pub limits: Limits,
    _folder: Folder,
}

/// What a program may use of the machine.
pub struct Limits {
    /// Whether it may use the network.
    pub network: bool,
    /// The most bytes of data of a process.
    pub memory: u64,
    /// The most processes and threads.
    pub processes: u64,
}

impl Limits {
    fn of(task: &Task<'_>) -> Limits {
        let memory = match task.params.get("memory") {
            Some(Value::Float(gigabytes)) => (gigabytes * 1e9) as u64,
            _ => machine_memory(),
        };
        let processes = match task.params.get("processes") {
            Some(Value::Int(most)) => u64::try_from(*most).unwrap_or(1),
            _ => u64::MAX,
        };
        Limits {
            network: task.params.get("network") == Some(&Value::Bool(true)),
            memory,
            processes,
        }
    }
}

/// The memory of this machine in bytes: more than that no program gets.
fn machine_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.map_or(u64::MAX, |n: u64| n.saturating_mul(1024))
}

/// A folder that goes with its owner. Should the owner be killed, it lies in the store, whose next
/// user removes it.
struct Folder(PathBuf);

impl Folder {
    fn new(task: &Task<'_>) -> Result<Folder, Failure> {
        let Some(path) = &task.place.scratch else {
            let made = tempfile::Builder::new().prefix("ablate-stage-").tempdir();
            let made =
                made.map_err(|e| failed("make a temporary folder in", &std::env::temp_dir(), &e))?;
            return Ok(Folder(made.keep()));
        };
        fs::create_dir(path).map_err(|e| failed("make", path, &e))?;
        Ok(Folder(path.clone()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Sandbox {
    pub fn new(task: &Task<'_>) -> Result<Sandbox, Failure> {
        let secrets = Secrets::of(task.params)?;
        let folder = Folder::new(task)?;
        // A relative path would mean something else in the program's folder.
        let root = fs::canonicalize(&folder.0).map_err(|e| failed("find", &folder.0, &e))?;
        let [work, input, out, home, tmp, status] =
            ["work", "in", "out", "home", "tmp", "status"].map(|n| root.join(n));
        for path in [&work, &input, &out, &home, &tmp, &status] {
            fs::create_dir(path).map_err(|e| failed("make", path, &e))?;
        }
        let mut environments = BTreeMap::new();
        for (name, file) in &task.files {
            match name.strip_suffix('/') {
                Some(name) => {
                    check_environment(name, file)?;
                    environments.insert(name.to_owned(), file.path.to_owned());
                }
                None => copy_verified(name, file, &work)?,
            }
        }
        for (port, table) in &task.inputs {
            if !is_name(port) {
                return Err(
                    Failure::new(format!("the input `{port}` cannot be a file name"))
                        .help("use letters, digits, `_` and `-` in the names of inputs"),
                );
            }
            let bytes = store::encode(table)
                .map_err(|e| Failure::new(format!("the input `{port}` cannot be written: {e}")))?;
            write(&input.join(format!("{port}.parquet")), &bytes)?;
        }
        let own = [&work, &out, &home, &tmp, &status]
            .map(Clone::clone)
            .to_vec();
        let progress = status.join("progress");
        let log = tempfile::tempfile_in(&root).map_err(|e| failed("make a file in", &root, &e))?;
        let bytecode = tmp.join("bytecode");
        let mut env: BTreeMap<String, OsString> = [
            ("HOME", home.into()),
            ("TMPDIR", tmp.into()),
            ("LANG", "C.UTF-8".into()),
            // Python randomises the order of sets by default.
            ("PYTHONHASHSEED", "0".into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            // Python takes a source for unchanged if its length and the second of its last change
            // are: what it compiled before, which is in no key, must not be found.
            ("PYTHONPYCACHEPREFIX", bytecode.into()),
            ("ABLATE_IN", input.clone().into()),
            ("ABLATE_OUT", out.clone().into()),
            ("ABLATE_SEED", task.seed.to_string().into()),
            ("ABLATE_PROGRESS", progress.clone().into()),
        ]
        .map(|(name, value): (&str, OsString)| (name.to_owned(), value))
        .into();
        let named = params::texts(task.params, "environment");
        let ordered = in_order(&named, &environments).into_iter();
        env.insert("PATH".to_owned(), search_path(ordered));
        let declared = task.params.get("env").and_then(Value::as_table);
        for (name, value) in declared.into_iter().flatten() {
            env.insert(name.clone(), value.as_text().unwrap_or_default().into());
        }
        for (name, value) in secrets.variables() {
            env.insert(name.to_owned(), value.into());
        }
        let devices = task.place.devices.clone();
        for name in system::GRAPHICS_VARIABLES
            .iter()
            .filter(|_| !devices.is_empty())
        {
            if let Some(value) = std::env::var_os(name) {
                env.entry((*name).to_owned()).or_insert(value);
            }
        }
        Ok(Sandbox {
            devices,
            secrets,
            work,
            out,
            log,
            input,
            own,
            progress,
            env,
            environments,
            pipeline: task
                .place
                .pipeline
                .as_ref()
                .and_then(|it| it.canonicalize().ok()),
            limits: Limits::of(task),
            _folder: folder,
        })
    }
}

/// An environment is read in place, so it must be what the key says: now, and after the
/// program has read it.
pub fn check_environment(name: &str, file: &SourceFile<'_>) -> Result<(), Failure> {
    if file.digest == environment::locked() {
        return Ok(());
    }
    let now = environment::digest(file.path).map_err(|problem| {
        Failure::new(problem.message)
            .help(problem.help)
            .at("environment")
    })?;
    if now == file.digest {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the environment `{name}` changed while the pipeline was running"
    ))
    .help("run again: what is installed now gets a new key")
    .at("environment"))
}

/// The contents of a declared file, if they are what the key says.
pub fn verified(name: &str, file: &SourceFile<'_>) -> Result<Vec<u8>, Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::new(format!("cannot read {}: {e}", file.path.display()))
            .help("it could be read when the pipeline was planned: was it moved?")
            .at("files")
    };
    let bytes = fs::read(file.path).map_err(unreadable)?;
    if Digest::of(&bytes) != file.digest {
        return Err(
            Failure::new(format!("{name} changed while the pipeline was running"))
                .help("run again: the new contents get a new key")
                .at("files"),
        );
    }
    Ok(bytes)
}

/// Copies a declared file. What is compared with the key is what the program will read.
fn copy_verified(name: &str, file: &SourceFile<'_>, work: &Path) -> Result<(), Failure> {
    if !stays_inside(name) {
        return Err(
            Failure::new(format!("`{name}` is not a name inside the stage's folder")).at("files"),
        );
    }
    let bytes = verified(name, file)?;
    let target = work.join(name);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(|e| failed("make", parent, &e))?;
    }
    write(&target, &bytes)?;
    // Of the permissions only "may be run" matters to a copy.
    let mode = if file.executable { 0o755 } else { 0o644 };
    fs::set_permissions(&target, fs::Permissions::from_mode(mode))
        .map_err(|e| failed("prepare", &target, &e))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|e| failed("write", path, &e))
}

fn failed(operation: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {operation} {}: {error}", path.display()))
        .help("programs run in a temporary folder of the store: `--store` names another place")
}
