//! Declared files: found from the pipeline's folder, hashed by content.
//! Size and time are never trusted: a file edited within the same second must count.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use stages::programs::{environment, installed};
use stages::{ProgramSpec, Stage, Type};
use store::{Digest, Installed, Params};

/// Files by the name that the stage sees. The name of an environment ends with `/`, which the name
/// of a file never does.
pub type Files = BTreeMap<String, DeclaredFile>;

/// A declared file, or a whole environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds.
    pub digest: Digest,
    /// Whether it may be run as a program, and its stage can tell.
    pub executable: bool,
}

/// What a stage's parameters name that lies outside the pipeline file.
#[derive(Clone, Default)]
pub struct Declared {
    /// Declared files and environments.
    pub files: Arc<Files>,
    /// What its program runs on.
    pub installed: Arc<Installed>,
}

/// Hashes files once, however many stages declare them, and looks once at what a program runs on: both are as they were
/// when the plan was made. Executions look again.
#[derive(Debug, Default)]
pub struct Hasher {
    digests: Mutex<HashMap<PathBuf, Digest>>,
    installed: Mutex<HashMap<Asked, Arc<Installed>>>,
    none: (Arc<Files>, Arc<Installed>),
}

/// What decides what a program runs on: how it is started, its own file if it is one of the stage's, and environments.
type Asked = (ProgramSpec, Vec<PathBuf>);

/// A declared file that cannot be used.
pub struct Unusable {
    /// The parameter that declares it.
    pub param: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Unusable {
    fn file(param: &'static str, message: String) -> Unusable {
        Unusable {
            param,
            message,
            help: "declared files are named relative to the pipeline file".to_owned(),
        }
    }
}

/// What a program with these files runs on, as it is now.
pub fn runs_on(program: &ProgramSpec, files: &Files) -> Result<Installed, environment::Problem> {
    let files = files
        .iter()
        .map(|(name, file)| (name.as_str(), file.path.as_path()));
    installed::find(program, files)
}

/// Whether a name leads to nothing but the pipeline's folder and below.
fn inside(name: &str) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !name.is_empty() && Path::new(name).components().all(inside)
}

/// A pipeline that is copied with its folder is whole; what lies elsewhere is linked, so that the link can be changed
/// and the pipeline stays as it is.
fn outside(param: &'static str, name: &str) -> Unusable {
    let file = Path::new(name).file_name().and_then(|file| file.to_str());
    let help = match file {
        Some(file) => format!(
            "link it: `ln -s {name} {file}` beside the pipeline file, and name `{file}` here"
        ),
        None => "declared files are named relative to the pipeline file".to_owned(),
    };
    Unusable {
        param,
        message: format!("`{name}` is outside the pipeline file's folder"),
        help,
    }
}

fn unusable(problem: environment::Problem) -> Unusable {
    Unusable {
        param: "environment",
        message: problem.message,
        help: problem.help,
    }
}

impl Hasher {
    /// What a stage's parameters declare.
    pub fn declared(
        &self,
        dir: &Path,
        kind: &dyn Stage,
        params: &Params,
    ) -> Result<Declared, Unusable> {
        let mut files = Files::new();
        // Files of this type are copied to the stage's folder, and "may be run" goes with them.
        let copied = |param: &str| {
            let mut described = kind.describe().params.iter();
            described.any(|known| known.name == param && known.ty == Type::Files)
        };
        for (param, name) in kind.files(params) {
            if !inside(name) {
                return Err(outside(param, name));
            }
            self.add(dir, name, copied(param), &mut files)
                .map_err(|message| Unusable::file(param, message))?;
        }
        let program = kind.program(params);
        let lock = program.as_ref().and_then(|program| program.lock.as_deref());
        if let Some(lock) = lock {
            self.add(dir, lock, false, &mut files)
                .map_err(|message| Unusable::file("lock", message))?;
        }
        let environments = kind.environments(params);
        if let Some((param, _)) = environments.first() {
            let names: Vec<&str> = environments.iter().map(|(_, name)| *name).collect();
            self.add_environments(dir, &names, lock.is_some(), &mut files)
                .map_err(|unusable| Unusable { param, ..unusable })?;
        }
        let installed = match program {
            Some(program) => self.installed(program, &files)?,
            None => self.none.1.clone(),
        };
        let files = match files.is_empty() {
            true => self.none.0.clone(),
            false => Arc::new(files),
        };
        Ok(Declared { files, installed })
    }

    /// What a program runs on.
    fn installed(&self, program: ProgramSpec, files: &Files) -> Result<Arc<Installed>, Unusable> {
        let first = program.run.first().map(String::as_str).unwrap_or_default();
        let first = first.strip_prefix("./").unwrap_or(first);
        let decides = |name: &str| {
            name == first || name.ends_with('/') || Some(name) == program.lock.as_deref()
        };
        let paths = files.iter().filter(|(name, _)| decides(name));
        let paths = paths.map(|(_, file)| file.path.clone()).collect();
        // Arguments are for the program alone.
        let run = program.run.iter().take(1).cloned().collect();
        let asked: Asked = (ProgramSpec { run, ..program }, paths);
        let known = self
            .installed
            .lock()
            .expect("nobody panics")
            .get(&asked)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = runs_on(&asked.0, files).map_err(|problem| Unusable {
            param: if asked.0.lock.is_some() {
                "lock"
            } else {
                "run"
            },
            message: problem.message,
            help: problem.help,
        })?;
        let found = Arc::new(found);
        let mut installed = self.installed.lock().expect("nobody panics");
        installed.insert(asked, found.clone());
        Ok(found)
    }

    /// Adds a file, or every file below a folder.
    fn add(&self, dir: &Path, name: &str, copied: bool, files: &mut Files) -> Result<(), String> {
        let mut open = vec![PathBuf::from(name)];
        while let Some(relative) = open.pop() {
            let path = dir.join(&relative);
            let failed = |error| format!("cannot read {}: {error}", relative.display());
            let found = fs::metadata(&path).map_err(failed)?;
            if found.is_dir() {
                // The store of an earlier run is not an input of this one.
                if path.join("provenance.db").exists() {
                    continue;
                }
                for entry in fs::read_dir(&path).map_err(failed)? {
                    let entry = entry.map_err(failed)?;
                    // A linked folder could lead back to where it stands.
                    let linked = entry.file_type().map_err(failed)?.is_symlink();
                    if linked && fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()) {
                        continue;
                    }
                    open.push(relative.join(entry.file_name()));
                }
                continue;
            }
            if !found.is_file() {
                return Err(format!("{} is not a regular file", relative.display()));
            }
            let known = self
                .digests
                .lock()
                .expect("nobody panics")
                .get(&path)
                .copied();
            let digest = match known {
                Some(digest) => digest,
                None => Digest::of_file(&path).map_err(failed)?,
            };
            let mut digests = self.digests.lock().expect("nobody panics");
            digests.insert(path.clone(), digest);
            drop(digests);
            let plain: PathBuf = relative
                .components()
                .filter(|c| *c != Component::CurDir)
                .collect();
            let Some(seen) = plain.to_str() else {
                return Err(format!("{} is not a UTF-8 name", relative.display()));
            };
            let executable = copied && found.permissions().mode() & 0o111 != 0;
            let file = DeclaredFile {
                path,
                digest,
                executable,
            };
            files.insert(seen.to_owned(), file);
        }
        Ok(())
    }

    /// Adds the folders that are opened to a program, each with the digest of all that it holds.
    fn add_environments(
        &self,
        dir: &Path,
        names: &[&str],
        locked: bool,
        files: &mut Files,
    ) -> Result<(), Unusable> {
        for found in environment::find(dir, names).map_err(unusable)? {
            let known = |digests: &HashMap<PathBuf, Digest>| digests.get(&found.path).copied();
            let known = known(&self.digests.lock().expect("nobody panics"));
            let digest = match known {
                _ if locked => environment::locked(),
                Some(digest) => digest,
                None => environment::digest(&found.path).map_err(unusable)?,
            };
            if !locked {
                let mut digests = self.digests.lock().expect("nobody panics");
                digests.insert(found.path.clone(), digest);
            }
            let file = DeclaredFile {
                path: found.path,
                digest,
                executable: false,
            };
            files.insert(format!("{}/", found.name.trim_end_matches('/')), file);
        }
        Ok(())
    }
}
