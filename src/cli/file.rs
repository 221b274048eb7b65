//! Files that commands write: whole or not at all, and when not, why, in words that name what the
//! user typed and no temporary file.

use std::io::{Error, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::exit::Exit;
use crate::diagnostic::Diagnostic;

/// All bytes under that name, or what was there before.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Exit> {
    if let Some(why) = precious(file) {
        return Err(Diagnostic::new(format!(
            "`{}` {why} and would be overwritten",
            file.display()
        ))
        .help("-o names another file")
        .into());
    }
    let written = || {
        // A pipe or a device is written to; it must not be replaced by a file.
        if std::fs::metadata(file).is_ok_and(|there| !there.is_file()) {
            return std::fs::write(file, bytes);
        }
        let mut temporary = beside(file)?;
        temporary.write_all(bytes)?;
        temporary.persist(file)?;
        Ok(())
    };
    written().map_err(|error| {
        Diagnostic::new(unwritten(file, &error))
            .help("-o names another file, in a folder that exists")
            .into()
    })
}

/// Why a file must not be overwritten by accident: people wrote it, or a store needs it.
fn precious(file: &Path) -> Option<&'static str> {
    let whole = std::path::absolute(file).ok()?;
    let is_store =
        |folder: &Path| folder.join("provenance.db").exists() && folder.join("objects").is_dir();
    if whole.ancestors().skip(1).any(is_store) {
        return Some("is inside a store");
    }
    let settings = file.extension().is_some_and(|ending| ending == "toml");
    (settings && file.exists()).then_some("already exists")
}

/// All bytes under that name, which nothing may have by then; or nothing.
pub fn write_new(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut temporary = beside(file)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(file)?;
    Ok(())
}

/// Why a file could not be written: its place, if that is the reason, or the kind of error. The
/// error itself may name a temporary file.
pub fn unwritten(file: &Path, error: &Error) -> String {
    let folder = folder(file);
    let why = match () {
        () if file.is_dir() => "it is a folder".to_owned(),
        () if folder.is_dir() => error.kind().to_string(),
        () if folder.exists() => format!("`{}` is not a folder", folder.display()),
        () => format!("no folder `{}`", folder.display()),
    };
    format!("cannot write `{}`: {why}", file.display())
}

fn beside(file: &Path) -> Result<tempfile::NamedTempFile, Error> {
    // Readable as any file of the user's is: without this it would be the user's alone.
    let open = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .permissions(open)
        .tempfile_in(folder(file))
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
