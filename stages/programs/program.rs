//! Which file a stage's program is, and which other files start it: links are followed, and so is
//! the first line of a script. These files are open to it, and not the folders that they are in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::sandbox::Sandbox;
use super::system::in_system;
use crate::Failure;

/// A program that was found.
#[derive(Debug, Default)]
pub struct Program {
    /// What is started, if it is to be another path than the stage writes.
    pub path: Option<PathBuf>,
    /// The files that must be open for it to start.
    pub files: Vec<PathBuf>,
    /// The folder to open if it needs more than itself: where it was installed.
    pub installed: Option<PathBuf>,
}

/// How many scripts may start each other.
const DEEPEST: usize = 5;

/// Finds the program that the first argument names. One that is not there is for the system to
/// report; one that is there and would run without what belongs to it is refused.
pub fn find(sandbox: &Sandbox, argument: &str) -> Result<Program, Failure> {
    let mut program = Program::default();
    let path = sandbox.env.get("PATH").cloned().unwrap_or_default();
    let in_work = |name: &Path| {
        // An absolute path stays what it is.
        let path = sandbox.work.join(name);
        path.is_file().then_some(path)
    };
    let search = Search {
        path,
        environments: &sandbox.environments,
        own: &in_work,
    };
    let chain = search.chain(argument);
    let Some(first) = chain.first() else {
        return Ok(program);
    };
    if argument.contains('/') && !argument.starts_with('/') && !first.starts_with(&sandbox.work) {
        program.path = Some(first.clone());
    }
    for path in chain {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !(is_open(sandbox, &path) && is_open(sandbox, &real)) {
            refuse(sandbox, argument, &path, &real)?;
            let folder = real.parent().map(installed);
            program.installed = program.installed.or(folder);
        }
        program.files.push(real);
    }
    Ok(program)
}

/// Where programs are looked for.
pub struct Search<'a> {
    /// The folders of PATH.
    pub path: OsString,
    /// Folders that are open to the program, by the names that the pipeline gives them.
    pub environments: &'a BTreeMap<String, PathBuf>,
    /// A file by its path in the program's folder; an absolute path stays what it is.
    pub own: &'a dyn Fn(&Path) -> Option<PathBuf>,
}

impl Search<'_> {
    /// The files that start a program, links not followed: itself, and for a script what its first line names.
    pub fn chain(&self, argument: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut next = self.locate(argument);
        for _ in 0..DEEPEST {
            let Some(path) = next.take() else { break };
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            next = interpreter(&real).and_then(|words| self.starter(&words));
            files.push(path);
        }
        files
    }

    /// Where a program is: in the folders of PATH, in an environment, or where its path says.
    fn locate(&self, argument: &str) -> Option<PathBuf> {
        if argument.contains('/') {
            let declared = self.environments.iter().find_map(|(name, path)| {
                let argument = argument.strip_prefix("./").unwrap_or(argument);
                let rest = argument.strip_prefix(name.as_str())?.strip_prefix('/')?;
                Some(path.join(rest))
            });
            return match declared {
                Some(path) => path.is_file().then_some(path),
                None => (self.own)(Path::new(argument)),
            };
        }
        let folders: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        let files = folders
            .iter()
            .filter_map(|folder| (self.own)(&folder.join(argument)));
        { files }.find(|file| may_run(file))
    }

    /// The file that a script's first line starts: `env` looks for its argument in PATH.
    fn starter(&self, words: &[String]) -> Option<PathBuf> {
        let program = Path::new(&words[0]);
        if program.file_name().is_some_and(|name| name == "env") {
            let named = |word: &&String| !word.starts_with('-') && !word.contains('=');
            return self.locate(words[1..].iter().find(named)?);
        }
        program.is_file().then(|| program.to_owned())
    }
}

/// The folders of PATH: the environments' first, as if they were activated.
pub fn search_path<'a>(environments: impl Iterator<Item = &'a PathBuf>) -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own = environments.map(|folder| folder.join("bin"));
    let own = own.filter(|folder| folder.is_dir());
    let all = own.chain(std::env::split_paths(&inherited));
    // A folder with a colon in its name cannot be in a PATH.
    std::env::join_paths(all).unwrap_or(inherited)
}

fn may_run(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether the folder of a file is open to the program: its own, an environment, or the system's.
fn is_open(sandbox: &Sandbox, path: &Path) -> bool {
    let mut own = sandbox.environments.values().chain([&sandbox.work]);
    let mut closed = sandbox.pipeline.iter();
    let closed = closed.any(|pipeline| path.starts_with(pipeline));
    own.any(|folder| path.starts_with(folder)) || in_system(path) && !closed
}

/// Refuses what would run without its dependencies, or whose changes would go unnoticed.
fn refuse(sandbox: &Sandbox, name: &str, path: &Path, real: &Path) -> Result<(), Failure> {
    let pipeline = sandbox.pipeline.as_deref();
    let relative = |path: &Path| {
        let relative = pipeline.and_then(|folder| path.strip_prefix(folder).ok())?;
        Some(relative.display().to_string())
    };
    let venv = path.parent().and_then(Path::parent);
    if let Some(venv) = venv.filter(|venv| venv.join("pyvenv.cfg").is_file()) {
        let folder = relative(venv).unwrap_or_else(|| venv.display().to_string());
        return Err(Failure::new(format!(
            "the program `{name}` belongs to the virtual environment {}, which is not declared",
            venv.display()
        ))
        .help(format!(
            "write environment = [\"{folder}\"]: it is opened to the program and enters the key"
        ))
        .at("run"));
    }
    match relative(path).or_else(|| relative(real)) {
        Some(file) => Err(Failure::new(format!(
            "the program `{name}` is {file} in the pipeline's folder, which is not declared"
        ))
        .help(format!(
            "write files = [\"{file}\"] and run it as \"./{file}\": then its changes are noticed"
        ))
        .at("run")),
        None => Ok(()),
    }
}

/// Where a program was installed: `/x` for `/x/bin`, and else the folder itself.
fn installed(folder: &Path) -> PathBuf {
    let name = folder.file_name().and_then(|name| name.to_str());
    let above = folder
        .parent()
        .filter(|_| matches!(name, Some("bin" | "sbin" | "shims")));
    above.unwrap_or(folder).to_owned()
}

/// The words of a script's first line, `#!/usr/bin/env python3`.
fn interpreter(script: &Path) -> Option<Vec<String>> {
    let mut start = Vec::new();
    let file = fs::File::open(script).ok()?;
    file.take(512).read_to_end(&mut start).ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}
