//! The folder in which a program runs, filled with what its stage declares and nothing else.
//! It is removed when the stage ends. Knows nothing of processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use store::{Digest, Value};

use super::check::{is_name, stays_inside};
use crate::{Failure, SourceFile, Task};

/// A fresh folder with `work/`, `in/`, `out/`, `home/`, `tmp/` and `status/`.
pub struct Sandbox {
    /// The program's working folder, with the declared files.
    pub work: PathBuf,
    /// Where it must leave its outputs.
    pub out: PathBuf,
    /// Where what it prints goes. It has no name, so that the program cannot put a pipe or a
    /// link to somebody's secrets in its place.
    pub log: File,
    /// Where its inputs are.
    pub input: PathBuf,
    /// The folders that it may write to.
    pub own: Vec<PathBuf>,
    /// Where it may say how far it is: `3/10`.
    pub progress: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, OsString>,
    _folder: tempfile::TempDir,
    /// Locked while this lives, so that others can tell the folder of a dead process.
    _lock: File,
}

/// What the folders are called, in the folder for temporary files.
const PREFIX: &str = "ablate-stage-";

impl Sandbox {
    pub fn new(task: &Task<'_>) -> Result<Sandbox, Failure> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| sweep(&std::env::temp_dir()));
        let (folder, lock) =
            fresh().map_err(|e| failed("make a temporary folder in", &std::env::temp_dir(), &e))?;
        // A relative TMPDIR would mean something else in the program's folder.
        let root = fs::canonicalize(folder.path());
        let root = root.map_err(|e| failed("find", folder.path(), &e))?;
        let [work, input, out, home, tmp, status] =
            ["work", "in", "out", "home", "tmp", "status"].map(|n| root.join(n));
        for path in [&work, &input, &out, &home, &tmp, &status] {
            fs::create_dir(path).map_err(|e| failed("make", path, &e))?;
        }
        for (name, file) in &task.files {
            copy_verified(name, file, &work)?;
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
        let mut env: BTreeMap<String, OsString> = [
            ("HOME", home.into()),
            ("TMPDIR", tmp.into()),
            ("LANG", "C.UTF-8".into()),
            // Python seeds the order of its sets by chance unless it is told not to.
            ("PYTHONHASHSEED", "0".into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            ("ABLATE_IN", input.clone().into()),
            ("ABLATE_OUT", out.clone().into()),
            ("ABLATE_SEED", task.seed.to_string().into()),
            ("ABLATE_PROGRESS", progress.clone().into()),
        ]
        .map(|(name, value): (&str, OsString)| (name.to_owned(), value))
        .into();
        env.extend(std::env::var_os("PATH").map(|path| ("PATH".to_owned(), path)));
        let declared = task.params.get("env").and_then(Value::as_table);
        for (name, value) in declared.into_iter().flatten() {
            env.insert(name.clone(), value.as_text().unwrap_or_default().into());
        }
        Ok(Sandbox {
            work,
            out,
            log,
            input,
            own,
            progress,
            env,
            _folder: folder,
            _lock: lock,
        })
    }
}

/// A new folder, locked. Another process may sweep it in the moment between making and locking,
/// because it looks like a dead one's then: so another is made.
fn fresh() -> std::io::Result<(tempfile::TempDir, File)> {
    loop {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let path = folder.path().join("lock");
        let lock = match File::create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            lock => lock?,
        };
        // Whoever sweeps locks first, and removes the file with the folder.
        if lock.try_lock().is_ok() && path.exists() {
            return Ok((folder, lock));
        }
    }
}

/// Removes folders whose process died without removing them.
fn sweep(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A folder without a lock may be a moment old: only its maker knows.
        let lock = File::open(entry.path().join("lock"));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies a declared file. What is compared with the key is what the program will read.
fn copy_verified(name: &str, file: &SourceFile<'_>, work: &Path) -> Result<(), Failure> {
    if !stays_inside(name) {
        return Err(
            Failure::new(format!("`{name}` is not a name inside the stage's folder")).at("files"),
        );
    }
    let unreadable = |e: std::io::Error| {
        Failure::new(format!("cannot read {}: {e}", file.path.display()))
            .help("it could be read when the pipeline was planned: was it moved?")
            .at("files")
    };
    let bytes = fs::read(file.path).map_err(unreadable)?;
    if Digest::of(&bytes) != file.digest {
        return Err(
            Failure::new(format!("{name} changed while the pipeline was running"))
                .help("run again: the new contents get a key of their own")
                .at("files"),
        );
    }
    let mode = fs::metadata(file.path)
        .map_err(unreadable)?
        .permissions()
        .mode();
    let target = work.join(name);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(|e| failed("make", parent, &e))?;
    }
    write(&target, &bytes)?;
    // Of the permissions only "may be run" matters to a copy.
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(&target, fs::Permissions::from_mode(mode))
        .map_err(|e| failed("prepare", &target, &e))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|e| failed("write", path, &e))
}

fn failed(operation: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {operation} {}: {error}", path.display()))
        .help("programs run in a temporary folder: set TMPDIR to a place with room")
}
