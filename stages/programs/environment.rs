//! Folders that a stage opens to its program with `environment = [".venv"]`: which they are, and a
//! digest of all that the program could read there, for the key.
//!
//! A Python distribution says in its RECORD what it installed: a file that is older than its RECORD
//! and as long as it says is taken from it, and any other is hashed. What no RECORD covers is
//! hashed, and what would lead to files outside is refused. Knows nothing of processes.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};
use store::Digest;

use super::system::in_system;

/// A folder that is open to a program.
#[derive(Clone, Debug)]
pub struct Environment {
    /// As the pipeline calls it.
    pub name: String,
    /// Where it is, without links.
    pub path: PathBuf,
}

/// Why a folder cannot be opened to a program.
#[derive(Debug)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

fn problem(message: String, help: &str) -> Problem {
    Problem {
        message,
        help: help.to_owned(),
    }
}

/// Finds the folders of these names: absolute, in the user's home (`~/…`), or relative to the
/// pipeline's folder.
pub fn find(pipeline: &Path, names: &[&str]) -> Result<Vec<Environment>, Problem> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let path = match name.strip_prefix("~/") {
            Some(rest) => match &home {
                Some(home) => home.join(rest),
                None => {
                    return Err(problem(
                        format!("`{name}` is in your home, and HOME is not set"),
                        "write an absolute path",
                    ));
                }
            },
            None => pipeline.join(name),
        };
        let path = path.canonicalize().map_err(|error| {
            problem(
                format!("cannot find the environment `{name}`: {error}"),
                "name a folder relative to the pipeline file, or by an absolute path",
            )
        })?;
        if !path.is_dir() {
            return Err(problem(
                format!("the environment `{name}` is not a folder"),
                "list single files in `files`",
            ));
        }
        let inside = pipeline.canonicalize();
        if inside.is_ok_and(|inside| inside.starts_with(&path)) {
            return Err(problem(
                format!("the environment `{name}` contains the pipeline's own folder"),
                "name the folder of the programs alone, such as `.venv`",
            ));
        }
        found.push(Environment {
            name: (*name).to_owned(),
            path,
        });
    }
    for one in &found {
        check_python(one, &found)?;
    }
    Ok(found)
}

/// An environment must not lean on folders that are closed to it: its interpreter's, or that of a
/// package which was installed with `pip install -e`.
fn check_python(one: &Environment, all: &[Environment]) -> Result<(), Problem> {
    let is_open = |path: &Path| {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        in_system(&path) || all.iter().any(|open| path.starts_with(&open.path))
    };
    let settings = fs::read_to_string(one.path.join("pyvenv.cfg")).unwrap_or_default();
    for line in settings.lines() {
        let Some(("home", home)) = line.split_once('=').map(|(k, v)| (k.trim(), v.trim())) else {
            continue;
        };
        let base = Path::new(home).parent().unwrap_or(Path::new(home));
        if !is_open(Path::new(home)) {
            return Err(problem(
                format!(
                    "the Python of the environment `{}` is in {}, which is closed to it",
                    one.name,
                    base.display()
                ),
                &format!(
                    "open that folder too: environment = [\"{}\", \"{}\"]",
                    one.name,
                    base.display()
                ),
            ));
        }
    }
    for (package, source) in editable(&one.path) {
        if !is_open(&source) {
            return Err(problem(
                format!(
                    "`{package}` of the environment `{}` is an editable install of {}, which is closed to it",
                    one.name,
                    source.display()
                ),
                "install it without `-e`, or open its folder too in `environment`",
            ));
        }
    }
    Ok(())
}

/// The distributions that an environment does not hold itself, with where their sources are.
fn editable(root: &Path) -> Vec<(String, PathBuf)> {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for lib in folders(&root.join("lib")) {
        for info in folders(&lib.join("site-packages")) {
            let Some(name) = info.file_stem().filter(|_| ends_with(&info, "dist-info")) else {
                continue;
            };
            let said = fs::read(info.join("direct_url.json")).unwrap_or_default();
            let said: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
            let url = said["url"]
                .as_str()
                .and_then(|url| url.strip_prefix("file://"));
            if let (Some(true), Some(path)) = (said["dir_info"]["editable"].as_bool(), url) {
                found.push((name.to_string_lossy().into_owned(), PathBuf::from(path)));
            }
        }
    }
    found
}

fn ends_with(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The tag of this version of the record that is hashed.
const RECORD: &str = "environment/1";

/// In the place of a digest: a lock file says what is installed there, and the folder is not read for the key.
pub fn locked() -> Digest {
    Digest::of(b"environment/locked")
}

/// The digest of all that a program could read in this folder.
pub fn digest(root: &Path) -> Result<Digest, Problem> {
    let entries = list(root)?;
    let covered = covered(root, &entries);
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for (name, entry) in &entries {
        let path = root.join(name);
        let unreadable = |error| unreadable(&path, error);
        let line = match entry {
            Entry::Link(target) => {
                // Of what a link leads to outside, only a program can be opened: the interpreter.
                let there = path.canonicalize().ok();
                let outside = there.filter(|there| !there.starts_with(root) && there.is_file());
                match outside {
                    Some(file) => {
                        let digest = Digest::of_file(&file).map_err(unreadable)?;
                        format!("link {target} {digest}")
                    }
                    None => format!("link {target}"),
                }
            }
            Entry::File(_) if is_compiled(name, &entries) => continue,
            Entry::File(found) => match covered.get(name) {
                // The RECORD, which is hashed itself, says what it holds.
                Some(said) if said.holds(&path, found).map_err(unreadable)? => continue,
                _ => {
                    let run = if is_executable(found) { "x " } else { "" };
                    let digest = Digest::of_file(&path).map_err(unreadable)?;
                    format!("file {run}{digest}")
                }
            },
        };
        lines.insert(name.clone(), line);
    }
    // What a RECORD names and is not there makes a difference to a program.
    for name in covered.keys().filter(|name| !entries.contains_key(*name)) {
        lines.insert(name.clone(), "missing".to_owned());
    }
    let record = serde_json::to_string(&(RECORD, lines)).expect("texts");
    Ok(Digest::of(record.as_bytes()))
}

/// The contents of an environment: folders matter by their contents only.
enum Entry {
    File(Metadata),
    /// With what it points to.
    Link(String),
}

type Entries = BTreeMap<String, Entry>;

/// Everything below the folder by its path from there.
fn list(root: &Path) -> Result<Entries, Problem> {
    let mut entries = Entries::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(|error| unreadable(&path, error))? {
            let entry = entry.map_err(|error| unreadable(&path, error))?;
            let relative = folder.join(entry.file_name());
            let path = entry.path();
            let found = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, error))?;
            let Some(name) = relative.to_str() else {
                return Err(problem(
                    format!("{} is not a UTF-8 name", path.display()),
                    "rename it: what a program may read must enter the key",
                ));
            };
            let kind = found.file_type();
            if kind.is_dir() {
                open.push(relative);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(|error| unreadable(&path, error))?;
                let target = target.to_string_lossy().into_owned();
                entries.insert(name.to_owned(), Entry::Link(target));
            } else if kind.is_file() {
                entries.insert(name.to_owned(), Entry::File(found));
            } else {
                return Err(problem(
                    format!("{} is not a regular file", path.display()),
                    "remove it: what a program may read must enter the key",
                ));
            }
        }
    }
    Ok(entries)
}

fn unreadable(path: &Path, error: std::io::Error) -> Problem {
    problem(
        format!("cannot read {}: {error}", path.display()),
        "everything in an environment enters the key, so it must be readable",
    )
}

/// Whether a file is Python's own cache of a source that lies where it should: it is made again
/// from that source whenever the source is another.
fn is_compiled(name: &str, entries: &Entries) -> bool {
    let Some((folder, file)) = name.rsplit_once("__pycache__/") else {
        return false;
    };
    let module = file.split('.').next().unwrap_or_default();
    file.ends_with(".pyc") && entries.contains_key(&format!("{folder}{module}.py"))
}

fn is_executable(found: &Metadata) -> bool {
    found.permissions().mode() & 0o111 != 0
}

/// What a RECORD says of a file.
struct Said {
    /// `sha256=` and the checksum in base64.
    hash: String,
    size: u64,
    /// When the RECORD itself was written, in seconds and nanoseconds.
    written: (i64, i64),
}

impl Said {
    /// Whether the file is the one that was installed. A file's time of change cannot be set back,
    /// so one that is not newer than the RECORD, which an installer writes last, need not be read.
    fn holds(&self, path: &Path, found: &Metadata) -> std::io::Result<bool> {
        if found.len() != self.size {
            return Ok(false);
        }
        if (found.ctime(), found.ctime_nsec()) <= self.written {
            return Ok(true);
        }
        Ok(self.hash == sha256(path)?)
    }
}

/// The files that the RECORDs of installed distributions cover, by their path from the root.
fn covered(root: &Path, entries: &Entries) -> BTreeMap<String, Said> {
    let mut covered = BTreeMap::new();
    for (name, entry) in entries {
        let (Some(info), Entry::File(found)) = (name.strip_suffix(".dist-info/RECORD"), entry)
        else {
            continue;
        };
        // Copied with its times, a RECORD is as old as it says, and all beside it are newer.
        let written = (found.mtime(), found.mtime_nsec());
        let written = written.min((found.ctime(), found.ctime_nsec()));
        let site = Path::new(info).parent().unwrap_or(Path::new(""));
        let rows = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_path(root.join(name));
        for row in rows
            .into_iter()
            .flat_map(|rows| rows.into_records().flatten())
        {
            let (Some(file), Some(hash), Some(Ok(size))) =
                (row.get(0), row.get(1), row.get(2).map(str::parse))
            else {
                continue;
            };
            if let Some(file) = inside(site, file).filter(|_| hash.starts_with("sha256=")) {
                let hash = hash.to_owned();
                covered.insert(
                    file,
                    Said {
                        hash,
                        size,
                        written,
                    },
                );
            }
        }
    }
    covered
}

/// `lib/site-packages` and `../../bin/tool` as `bin/tool`; nothing for what is outside.
fn inside(site: &Path, file: &str) -> Option<String> {
    let mut path = PathBuf::new();
    for part in site.join(file).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            _ => return None,
        }
    }
    path.to_str().map(str::to_owned)
}

/// A file's SHA-256 as a RECORD writes it.
fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    Ok(format!("sha256={}", base64(&hasher.finalize())))
}

/// Base64 with `-` and `_`, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=three.len() {
            let six = bits >> (18 - 6 * n) & 63;
            text.push(char::from(LETTERS[six as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A virtual environment with one distribution, as pip would leave it.
    fn venv() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n");
        write("lib/site-packages/m.py", "x = 1\n");
        let sum = sha256(&dir.path().join("lib/site-packages/m.py")).unwrap();
        write(
            "lib/site-packages/__pycache__/m.cpython-312.pyc",
            "compiled",
        );
        write("bin/tool", "#!/usr/bin/python3\n");
        write(
            "lib/site-packages/m-1.dist-info/RECORD",
            &format!("m.py,{sum},6\n__pycache__/m.cpython-312.pyc,,\nm-1.dist-info/RECORD,,\n"),
        );
        dir
    }

    fn of(dir: &tempfile::TempDir) -> Digest {
        digest(dir.path()).unwrap()
    }

    #[test]
    fn whatever_a_program_could_read_changes_the_digest() {
        type Change<'a> = (&'a str, &'a dyn Fn(&Path));
        let changes: [Change<'_>; 9] = [
            ("an edited module of the same length", &|dir| {
                // Later than the RECORD, so that its time of change tells.
                std::thread::sleep(std::time::Duration::from_millis(20));
                fs::write(dir.join("lib/site-packages/m.py"), "x = 2\n").unwrap();
            }),
            ("an edited module in a copy that keeps all times", &|dir| {
                let site = dir.join("lib/site-packages");
                std::thread::sleep(std::time::Duration::from_millis(20));
                fs::write(site.join("m.py"), "x = 2\n").unwrap();
                // As `cp -a` would: the RECORD is made last, with the time that it had.
                let record = site.join("m-1.dist-info/RECORD");
                let time = fs::metadata(&record).unwrap().modified().unwrap();
                fs::copy(&record, site.join("copy")).unwrap();
                fs::rename(site.join("copy"), &record).unwrap();
                let file = fs::File::options().write(true).open(&record).unwrap();
                file.set_modified(time).unwrap();
            }),
            ("a longer module", &|dir| {
                fs::write(dir.join("lib/site-packages/m.py"), "x = 1000\n").unwrap();
            }),
            ("a module that is gone", &|dir| {
                fs::remove_file(dir.join("lib/site-packages/m.py")).unwrap();
            }),
            ("a loose file", &|dir| {
                fs::write(dir.join("lib/site-packages/loose.py"), "").unwrap();
            }),
            ("an edited script", &|dir| {
                fs::write(dir.join("bin/tool"), "#!/usr/bin/python4\n").unwrap();
            }),
            ("a script that may be run", &|dir| {
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(dir.join("bin/tool"), mode).unwrap();
            }),
            ("another version in pyvenv.cfg", &|dir| {
                fs::write(dir.join("pyvenv.cfg"), "home = /usr/bin\nversion = 3\n").unwrap();
            }),
            ("compiled code without its source", &|dir| {
                let cache = dir.join("lib/site-packages/__pycache__");
                fs::write(cache.join("n.cpython-312.pyc"), "hidden").unwrap();
            }),
        ];
        for (what, change) in changes {
            let dir = venv();
            let before = of(&dir);
            assert_eq!(of(&dir), before, "the same folder has the same digest");
            change(dir.path());
            assert_ne!(of(&dir), before, "{what}");
        }
    }

    #[test]
    fn what_python_compiles_and_what_is_touched_changes_nothing() {
        let dir = venv();
        let before = of(&dir);
        let site = dir.path().join("lib/site-packages");
        fs::write(site.join("__pycache__/m.cpython-312.pyc"), "again").unwrap();
        assert_eq!(of(&dir), before);
        // Written again with the same bytes: newer than the RECORD, and still what it says.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(site.join("m.py"), "x = 1\n").unwrap();
        assert_eq!(of(&dir), before);
    }

    #[test]
    fn the_interpreter_that_a_link_leads_to_counts() {
        let dir = venv();
        let outside = tempfile::tempdir().unwrap();
        let python = outside.path().join("python3");
        fs::write(&python, "one").unwrap();
        std::os::unix::fs::symlink(&python, dir.path().join("bin/python")).unwrap();
        let before = of(&dir);
        fs::write(&python, "two").unwrap();
        assert_ne!(of(&dir), before);
    }

    #[test]
    fn what_cannot_be_opened_is_refused_with_a_reason() {
        let dir = venv();
        let pipeline = dir.path().join("project");
        fs::create_dir(&pipeline).unwrap();
        let message = |name: &str| find(&pipeline, &[name]).unwrap_err().message;
        assert!(message("none").starts_with("cannot find the environment `none`: "));
        assert_eq!(
            message(".."),
            "the environment `..` contains the pipeline's own folder"
        );
        assert_eq!(
            message("../pyvenv.cfg"),
            "the environment `../pyvenv.cfg` is not a folder"
        );
        // An interpreter that is neither of the system nor declared.
        let venv = pipeline.join(".venv");
        let base = dir.path().join("versions/3.12");
        fs::create_dir_all(base.join("bin")).unwrap();
        fs::create_dir(&venv).unwrap();
        let home = base.join("bin");
        fs::write(
            venv.join("pyvenv.cfg"),
            format!("home = {}\n", home.display()),
        )
        .unwrap();
        let refused = find(&pipeline, &[".venv"]).unwrap_err();
        let base = base.display().to_string();
        assert_eq!(
            refused.help,
            format!("open that folder too: environment = [\".venv\", \"{base}\"]")
        );
        assert_eq!(find(&pipeline, &[".venv", &base]).unwrap().len(), 2);
        // A package whose sources are somewhere else.
        let info = venv.join("lib/python3.12/site-packages/mine-1.dist-info");
        fs::create_dir_all(&info).unwrap();
        let url = r#"{"url": "file:///somewhere/mine", "dir_info": {"editable": true}}"#;
        fs::write(info.join("direct_url.json"), url).unwrap();
        assert_eq!(
            find(&pipeline, &[".venv", &base]).unwrap_err().message,
            "`mine-1` of the environment `.venv` is an editable install of /somewhere/mine, which is closed to it"
        );
    }

    #[test]
    fn checksums_are_written_as_a_record_writes_them() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
        assert_eq!(base64(b"Man"), "TWFu");
    }
}
