//! A remote that is a folder, on a disk that people share or carry about.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::bucket::{Body, Bucket, Listed};

/// A folder.
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at an absolute path, which must be there: one that is gone is a disk that is not mounted, not a remote
    /// without results.
    pub fn open(path: &str) -> Result<Folder, String> {
        let folder = Folder::named(path)?;
        match folder.0.is_dir() {
            true => Ok(folder),
            false => Err(format!(
                "the folder `{path}` does not exist: is its disk mounted?"
            )),
        }
    }

    /// The same for a remote that is added: the folder is made.
    pub fn create(path: &str) -> Result<Folder, String> {
        let folder = Folder::named(path)?;
        let made = fs::create_dir_all(&folder.0);
        made.map_err(|error| format!("cannot make the folder `{path}`: {error}"))?;
        Ok(folder)
    }

    fn named(path: &str) -> Result<Folder, String> {
        match path.starts_with('/') {
            true => Ok(Folder(path.into())),
            false => Err(format!(
                "`file://{path}` has no absolute path: write file:///FOLDER"
            )),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Bucket for Folder {
    fn get(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        match fs::File::open(self.at(name)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read `{name}`: {error}")),
        }
    }

    fn put(&self, name: &str, body: Body<'_>) -> Result<(), String> {
        let path = self.at(name);
        let folder = path.parent().unwrap_or(&self.0);
        let written = fs::create_dir_all(folder).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            match body {
                Body::Bytes(bytes) => file.write_all(bytes)?,
                Body::File(from) => drop(io::copy(&mut fs::File::open(from)?, &mut file)?),
            }
            file.as_file().sync_all()?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(mode)?;
            file.persist(&path)?;
            Ok(())
        });
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    fn look(&self, name: &str) -> Result<Option<Listed>, String> {
        match fs::metadata(self.at(name)) {
            Ok(found) => Ok(Some(listed(name.to_owned(), &found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot look at `{name}`: {error}")),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, String> {
        let mut found = Vec::new();
        let mut folders = vec![self.at(prefix)];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("cannot list `{}`: {error}", folder.display())),
            };
            for entry in entries.flatten() {
                let path = entry.path();
                match entry.metadata() {
                    Ok(about) if about.is_dir() => folders.push(path),
                    Ok(about) => found.extend(self.name(&path).map(|name| listed(name, &about))),
                    Err(_) => {}
                }
            }
        }
        Ok(found)
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        match fs::remove_file(self.at(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("cannot remove `{name}`: {error}"))
            }
            _ => Ok(()),
        }
    }
}

impl Folder {
    fn name(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.0).ok()?.to_str()?.to_owned())
    }
}

fn listed(name: String, about: &fs::Metadata) -> Listed {
    Listed {
        name,
        bytes: about.len(),
        modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    }
}
