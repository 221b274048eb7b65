//! Printing: lines for people, JSON for programs, bytes as they are.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;
use crate::diagnostic::Diagnostic;
use crate::visible;

/// A reader that has gone away ends the program quietly; a full disk does not.
pub(super) fn unprinted(error: std::io::Error) -> Exit {
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        eprintln!("error: cannot write to standard output: {error}");
        return Exit::Code(1);
    }
    Exit::Code(0)
}

/// Whether this process prints JSON, in which hidden signs are written as JSON writes them.
pub(super) static PRINTS_JSON: AtomicBool = AtomicBool::new(false);

/// Prints a line. What a terminal would obey and not show is written out: texts of data sets, logs
/// and other people's stores are printed, and may say anything. Not on terminals alone: what goes
/// through a pager or `grep` ends on one.
pub(crate) fn print_line(line: std::fmt::Arguments<'_>) -> Result<(), Exit> {
    // In one piece: standard output would pass on a megabyte of JSON by the kilobyte.
    let line = format!("{line}\n");
    let shown = match PRINTS_JSON.load(Ordering::Relaxed) {
        true => visible::in_json(&line),
        false => visible::on_terminal(&line),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(shown.as_bytes()).map_err(unprinted)
}

/// Prints a result: to a file or a program byte for byte, to a terminal as a person may look at it.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    match (out.is_terminal(), std::str::from_utf8(bytes)) {
        (false, _) => out.write_all(bytes),
        (true, Ok(text)) => out.write_all(visible::on_terminal(text).as_bytes()),
        (true, Err(_)) => {
            let problem =
                Diagnostic::new("the output is binary, and standard output is a terminal");
            return Err(problem.help("-o FILE writes it to a file").into());
        }
    }
    .map_err(unprinted)
}

/// Prints a line to standard error, for people.
pub(crate) fn print_note(line: std::fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    // Whoever has closed it does not want to know.
    let _ = std::io::stderr().write_all(visible::on_terminal(&line).as_bytes());
}

/// Prints a line to standard error.
macro_rules! note {
    ($($part:tt)*) => {
        $crate::cli::print::print_note(format_args!($($part)*))
    };
}
pub(crate) use note;

/// Prints a line to standard output.
macro_rules! out {
    ($($part:tt)*) => {{
        $crate::cli::print::print_line(format_args!($($part)*))?;
    }};
}
pub(crate) use out;
