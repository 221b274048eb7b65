//! What to do about a program that failed, by how it ended and by what it printed. Knows nothing of what it was for.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::confine;
use super::program::Program;
use super::sandbox::Limits;

/// What to do about a program that failed, if what it printed sounds like the sandbox.
pub fn advice(
    status: ExitStatus,
    printed: &str,
    program: &Program,
    limits: &Limits,
) -> Option<String> {
    let said = printed.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    // Of a program that was installed somewhere only its own file is open.
    if let Some(folder) = &program.installed {
        return Some(format!(
            "of {0} only the program itself is open to it: if it needs what lies beside it, write \
             environment = [\"{0}\"]",
            folder.display()
        ));
    }
    if let Some(path) = confine::refused(printed) {
        return Some(format!(
            "a program sees its declared files, its inputs and system folders only, and writes to \
             its own folders: if it needs {path}, name it in `files`, or its folder in \
             `environment`, make it an input, or run with --no-sandbox"
        ));
    }
    const MEMORY: &[&str] = &[
        "memoryerror",
        "bad_alloc",
        "cannot allocate",
        "out of memory",
    ];
    // A shell says so of the last program that it ran.
    let killed = status.signal() == Some(9) || status.code() == Some(128 + 9);
    if says(MEMORY) || killed {
        let gigabytes = limits.memory as f64 / 1e9;
        let why = if killed {
            "if it ran out of memory: "
        } else {
            ""
        };
        return Some(format!(
            "{why}its limit is {gigabytes:.1} GB; raise `memory`"
        ));
    }
    if says(&["cannot fork", "fork: retry", "can't start new thread"]) {
        return Some(format!(
            "its limit is {} processes and threads; raise `processes`",
            limits.processes
        ));
    }
    const NETWORK: &[&str] = &[
        "network is unreachable",
        "name resolution",
        "could not resolve",
        "name or service not known",
        "connection refused",
    ];
    if !limits.network && says(NETWORK) {
        return Some(
            "the network is closed to programs: declare what it fetches in `files` or as an input, \
             or write network = true, which audits name"
                .to_owned(),
        );
    }
    None
}
