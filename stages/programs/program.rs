//! Which file a stage's program is, and which other files start it: links are followed, and so is
//! the first line of a script. These files are open to it, and not the folders that they are in.

use std::path::{Path, PathBuf};

use super::sandbox::Sandbox;
use super::search::Search;
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
        // It may be there, and not be declared.
        let there = sandbox
            .pipeline
            .as_ref()
            .map(|folder| folder.join(argument));
        if let Some(path) = there.filter(|path| argument.contains('/') && path.is_file()) {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            refuse(sandbox, argument, &path, &real)?;
        }
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
