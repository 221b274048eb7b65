//! The cache: finding a file, verifying its checksum, and writing it atomically.
//! Knows nothing of networks.

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::DataHome;
use crate::kinds::dataset::catalogue::File;

/// The path of a file of the right size.
pub fn place(home: &DataHome, file: &File) -> Option<PathBuf> {
    let roots = [Some(&home.cache), home.mirror.as_ref()];
    let mut paths = roots
        .into_iter()
        .flatten()
        .map(|root| root.join(&file.path));
    paths.find(|path| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == file.size)
    })
}

/// Opens a file and verifies its checksum. The error says what is wrong with it.
pub fn check(path: &Path, file: &File) -> Result<fs::File, String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("cannot read {shown}: {error}");
    let mut opened = fs::File::open(path).map_err(failed)?;
    let found = sha256(&mut opened).map_err(failed)?;
    if found != file.sha256 {
        return Err(format!(
            "{shown} has SHA-256 {found}, expected {}",
            file.sha256
        ));
    }
    opened.rewind().map_err(failed)?;
    Ok(opened)
}

/// The SHA-256 of what a reader gives, in hexadecimal.
pub fn sha256(reader: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Moves checked bytes to their place in the cache: whole, or not at all.
pub fn keep(home: &DataHome, file: &File, mut from: impl Read) -> Result<(), String> {
    let target = home.cache.join(&file.path);
    let folder = target.parent().expect("a file in the cache has a folder");
    let failed = |error: io::Error| format!("cannot write {}: {error}", target.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    // One byte more than declared is enough to know that it is another file.
    let mut limited = from.by_ref().take(file.size + 1);
    io::copy(&mut limited, &mut temporary).map_err(failed)?;
    temporary
        .flush()
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(failed)?;
    check(temporary.path(), file)
        .map_err(|_| format!("{} does not match its checksum in the catalogue", file.path))?;
    temporary
        .persist(&target)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// A damaged file of the cache makes way for a good one. A mirror is not ours to tidy.
pub fn set_aside(home: &DataHome, path: &Path) {
    if path.starts_with(&home.cache) {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".damaged");
        let _ = fs::rename(path, aside);
    }
}

/// Checks a file and puts it into the cache.
pub fn copy(from: &Path, home: &DataHome, file: &File) -> Result<(), String> {
    keep(home, file, check(from, file)?)
}
