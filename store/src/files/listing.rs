//! Lists the objects' folder: what is an object in its place, and what is something else.
//! Looks at names only, never at bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::error::{At, Error};

/// A file in the objects' folder.
pub(crate) enum ObjectFile {
    /// A file in its place under a proper name.
    Object { digest: Digest, path: PathBuf },
    /// Anything else: not an object, or not where it belongs.
    Foreign(PathBuf),
}

/// Everything in the objects' folder, in the order of the names.
pub(crate) fn list(objects: &Path) -> Result<Vec<ObjectFile>, Error> {
    let mut entries = Vec::new();
    for folder in children(objects)? {
        let real_folder = fs::symlink_metadata(&folder)
            .at("look at", &folder)?
            .is_dir();
        if !real_folder {
            entries.push(ObjectFile::Foreign(folder));
            continue;
        }
        for path in children(&folder)? {
            let is_file = match fs::symlink_metadata(&path) {
                // Set aside meanwhile: it was damaged.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found.at("look at", &path)?.is_file(),
            };
            entries.push(match digest_of_name(&path) {
                Some(digest) if is_file => ObjectFile::Object { digest, path },
                _ => ObjectFile::Foreign(path),
            });
        }
    }
    Ok(entries)
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).at("list the folder", folder)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths
        .collect::<io::Result<Vec<_>>>()
        .at("list the folder", folder)?;
    paths.sort();
    Ok(paths)
}

/// The digest that the place `ab/cd….parquet` stands for.
fn digest_of_name(path: &Path) -> Option<Digest> {
    let folder = path.parent()?.file_name()?.to_str()?;
    let rest = path.file_name()?.to_str()?.strip_suffix(".parquet")?;
    let name = format!("{folder}{rest}");
    let digest: Digest = name.parse().ok()?;
    // Parsing takes capitals too, and the cut between folder and file must be the right one.
    (folder.len() == 2 && digest.to_string() == name).then_some(digest)
}
