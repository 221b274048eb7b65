//! `ablate lock`: writes what the stages gave to `results.lock`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::inspect::lock::Lock;
use crate::inspect::status::instance_statuses;
use crate::plan;

/// What `lock` takes.
#[derive(Args)]
pub struct Arguments {
    /// The file to write [default: results.lock beside the pipeline file]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the lock of all instances.
pub fn lock(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => default_path(global),
    };
    let before = path.exists().then(|| read(&path)).transpose()?;
    if let Some(before) = &before {
        check_subject(&path, before, &before.pipeline, &global.profile)?;
    }
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let store = global.needed_store()?;
    let all = vec![true; plan.instances.len()];
    let statuses = instance_statuses(&plan, &all, Some(&store));
    let lock = Lock::of(&plan, global.profile.clone(), &statuses, &store)?;
    let lock = lock.map_err(|missing| {
        let (first, count) = (missing.first, missing.count);
        let what = match count {
            1 => format!("the stage `{first}` has no result to lock"),
            _ => format!("{count} stages have no result to lock, `{first}` among them"),
        };
        Exit::Failed(Diagnostic::new(what).help(global.command("run")))
    })?;
    write(&path, &lock)?;
    tell(global, &path, &lock, before.as_ref())
}

/// Where the lock of the pipeline is, unless another file is named.
pub fn default_path(global: &Global) -> PathBuf {
    global.file.with_file_name("results.lock")
}

/// Reads a lock.
pub fn read(path: &Path) -> Result<Lock, Exit> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Diagnostic::new(format!("cannot read `{name}`: {error}"))
            .help("`ablate lock` writes one from the results of this store")
    })?;
    Lock::parse(&text).map_err(|why| {
        Diagnostic::new(format!("`{name}` is not a lock of results: {why}"))
            .help("`ablate lock` writes one anew")
            .into()
    })
}

/// A lock is of one pipeline and of one profile: compared with others, everything would be different.
pub fn check_subject(
    path: &Path,
    lock: &Lock,
    pipeline: &str,
    profile: &Option<String>,
) -> Result<(), Exit> {
    let name = path.display();
    if lock.pipeline != pipeline {
        let what = format!("`{name}` is of the pipeline `{}`", lock.pipeline);
        let help = format!("this pipeline is called `{pipeline}`");
        return Err(Diagnostic::new(what).help(help).into());
    }
    if lock.profile != *profile {
        let (what, option) = match &lock.profile {
            Some(profile) => (
                format!("`{name}` is of the profile `{profile}`"),
                format!("add `--profile {profile}`"),
            ),
            None => (
                format!("`{name}` is of the pipeline without a profile"),
                "leave out `--profile`".to_owned(),
            ),
        };
        let help = format!("{option}, or name another file");
        return Err(Diagnostic::new(what).help(help).into());
    }
    Ok(())
}

/// Whole or not at all.
fn write(path: &Path, lock: &Lock) -> Result<(), Exit> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let written = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .and_then(|mut file| {
            file.write_all(lock.to_string().as_bytes())?;
            file.persist(path).map_err(|error| error.error)
        });
    match written {
        Ok(_) => Ok(()),
        Err(error) => {
            let name = path.display();
            let problem = Diagnostic::new(format!("cannot write `{name}`: {error}"));
            Err(Exit::Failed(problem))
        }
    }
}

/// Says what was written, and what of it is new.
fn tell(global: &Global, path: &Path, lock: &Lock, before: Option<&Lock>) -> Result<(), Exit> {
    let (name, stages) = (path.display(), lock.stages.len());
    let old = |label: &str| before.and_then(|before| before.stages.get(label));
    let (mut changed, mut new) = (0, 0);
    for (label, stage) in &lock.stages {
        match old(label) {
            Some(known) => changed += usize::from(known.outputs != stage.outputs),
            None => new += 1,
        }
    }
    let gone = before.map_or(0, |it| it.stages.len() + new - stages);
    match () {
        () if global.json => out!(
            "{}",
            json!({
                "file": name.to_string(), "stages": stages,
                "changed": changed, "new": new, "gone": gone,
            })
        ),
        () if global.quiet => {}
        () => out!(
            "ablate: {name}: {}, {changed} changed, {new} new, {gone} gone",
            plural(stages, "stage")
        ),
    }
    Ok(())
}
