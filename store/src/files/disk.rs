//! The store's own file operations, each behind a number, so that tests can let any of them fail.
//! In a build without debug assertions nothing of that is left: these are the standard library's.
//!
//! `ABLATE_FAULT=MODE@N` makes the `N`th operation of the process go wrong, `MODE@N+` all from
//! there on, and `count@FILE` only writes their names to a file. The modes:
//!
//! - `fail`: the disk reports an error; `full`: it has no space left
//! - `short`: half of a write arrives, then there is no space left; other operations: `full`
//! - `kill`: the process kills itself (SIGKILL) before the operation
//! - `torn`: half of a write arrives, then the process kills itself; other operations: `kill`

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Reads a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    pass("read")?;
    // A pipe in the place of a file would be waited for.
    let mut options = OpenOptions::new();
    let mut file = (options.read(true).custom_flags(libc::O_NONBLOCK)).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a new file that nobody may change afterwards.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fault = fault("write a file");
    if let Some(fault) = fault.filter(|fault| !fault.is_partial()) {
        return Err(fault.strike());
    }
    let mut file = read_only(path)?;
    match fault {
        None => file.write_all(bytes),
        Some(fault) => {
            file.write_all(&bytes[..bytes.len() / 2])?;
            Err(fault.strike())
        }
    }
}

/// Makes a new file that nobody may change but whoever holds it.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    pass("make a file")?;
    read_only(path)
}

/// Writes more to a file of [`create_new`].
pub(crate) fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    match fault("write a file") {
        None => file.write_all(bytes),
        Some(fault) => {
            if fault.is_partial() {
                file.write_all(&bytes[..bytes.len() / 2])?;
            }
            Err(fault.strike())
        }
    }
}

/// Read-only from the start, so that a script or an editor that is handed an object cannot change
/// it by accident.
fn read_only(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o444).open(path)
}

/// Writes a file that may be there already.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    pass("write a file")?;
    fs::write(path, bytes)
}

/// Gives a file another name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    pass("rename")?;
    fs::rename(from, to)
}

/// Makes a folder.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    pass("make a folder")?;
    fs::create_dir(path)
}

/// Makes a folder and those above it, unless they are there.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    pass("make folders")?;
    fs::create_dir_all(path)
}

/// Removes a file.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    pass("remove a file")?;
    fs::remove_file(path)
}

/// Opens a plain file for whatever these options say: locks, mostly. A pipe in its place would
/// make us wait for whoever is at its other end, perhaps for ever.
pub(crate) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    pass("open a file")?;
    let opened = options.clone().custom_flags(libc::O_NONBLOCK).open(path);
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other(format!(
            "it is {}, not a file: remove it",
            kind(found.file_type())
        ))),
        _ => opened,
    }
}

/// What something is that should have been a plain file.
fn kind(found: fs::FileType) -> &'static str {
    match found {
        _ if found.is_dir() => "a folder",
        _ if found.is_fifo() => "a named pipe",
        _ if found.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Waits until a file or folder is on the disk.
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    pass("sync")?;
    File::open(path)?.sync_all()
}

/// Waits until the bytes of an open file are on the disk.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    pass("sync")?;
    file.sync_data()
}

/// An operation that somebody else does: a library, or the database.
pub(crate) fn pass(name: &'static str) -> io::Result<()> {
    match fault(name) {
        None => Ok(()),
        Some(fault) => Err(fault.strike()),
    }
}

/// The same for an operation of the database, with the error that SQLite would give.
pub(crate) fn pass_database(name: &'static str) -> rusqlite::Result<()> {
    pass(name).map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::StorageFull => rusqlite::ffi::SQLITE_FULL,
            _ => rusqlite::ffi::SQLITE_IOERR,
        };
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
    })
}

#[cfg(not(debug_assertions))]
use none::fault;
#[cfg(debug_assertions)]
use some::fault;

#[cfg(not(debug_assertions))]
mod none {
    use std::io;

    /// There are none.
    #[derive(Clone, Copy)]
    pub enum Fault {}

    impl Fault {
        pub fn is_partial(&self) -> bool {
            match *self {}
        }

        pub fn strike(self) -> io::Error {
            match self {}
        }
    }

    #[inline(always)]
    pub fn fault(_: &'static str) -> Option<Fault> {
        None
    }
}

#[cfg(debug_assertions)]
mod some {
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{LazyLock, Mutex};

    /// What goes wrong.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Fault {
        Fail,
        Full,
        Short,
        Kill,
        Torn,
    }

    impl Fault {
        pub fn is_partial(&self) -> bool {
            matches!(self, Fault::Short | Fault::Torn)
        }

        /// Lets it happen.
        pub fn strike(self) -> io::Error {
            match self {
                Fault::Fail => io::Error::from_raw_os_error(libc::EIO),
                Fault::Full | Fault::Short => io::Error::from_raw_os_error(libc::ENOSPC),
                Fault::Kill | Fault::Torn => {
                    // SAFETY: `raise` takes a number and touches no memory of ours. Nothing
                    // else ends a process without a chance to tidy up, as a power cut does.
                    unsafe { libc::raise(libc::SIGKILL) };
                    unreachable!("nobody survives SIGKILL")
                }
            }
        }
    }

    enum Wish {
        Strike { fault: Fault, from: u64, on: bool },
        Count(Mutex<File>),
    }

    static WISH: LazyLock<Option<Wish>> = LazyLock::new(|| {
        let text = std::env::var("ABLATE_FAULT").ok()?;
        let wish = parse(&text);
        Some(wish.unwrap_or_else(|| panic!("ABLATE_FAULT: `{text}` is not MODE@N")))
    });

    fn parse(text: &str) -> Option<Wish> {
        let (mode, place) = text.split_once('@')?;
        let fault = match mode {
            "fail" => Fault::Fail,
            "full" => Fault::Full,
            "short" => Fault::Short,
            "kill" => Fault::Kill,
            "torn" => Fault::Torn,
            "count" => {
                let file = OpenOptions::new().create(true).append(true).open(place);
                return Some(Wish::Count(Mutex::new(file.ok()?)));
            }
            _ => return None,
        };
        let (number, on) = match place.strip_suffix('+') {
            Some(number) => (number, true),
            None => (place, false),
        };
        let from = number.parse().ok()?;
        Some(Wish::Strike { fault, from, on })
    }

    /// Counts an operation, and says whether it goes wrong.
    pub fn fault(name: &'static str) -> Option<Fault> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let wish = WISH.as_ref()?;
        let number = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
        match wish {
            Wish::Strike { fault, from, on } => {
                (number == *from || *on && number > *from).then_some(*fault)
            }
            Wish::Count(file) => {
                let _ = writeln!(crate::mutex::lock(file), "{number} {name}");
                None
            }
        }
    }
}
