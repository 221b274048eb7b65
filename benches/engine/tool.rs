//! What this program asks of a tool, be it ablate or a peer.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::dag::Dag;

/// How many stages at once, for every tool that can be told.
pub const JOBS: &str = "2";

/// A tool that can run a DAG in a folder.
pub trait Tool {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// Its version, or nothing if it does not run here.
    fn version(&self) -> Option<String>;

    /// Where to find it, for somebody who does not have it.
    fn how_to_get(&self) -> &'static str;

    /// Whether a DAG of this many stages takes so long that one must ask for it.
    fn too_slow_for(&self, stages: usize) -> bool {
        let _ = stages;
        false
    }

    /// Writes the DAG into an empty folder, with the dial as it is at first.
    fn write(&self, dag: &Dag, dir: &Path) -> io::Result<()>;

    /// Turns the dial, as a user would: by editing a file.
    fn turn(&self, dag: &Dag, dir: &Path, dial: i64) -> io::Result<()>;

    /// The command that makes everything.
    fn run(&self) -> Command;

    /// The command that says what would be made.
    fn plan(&self) -> Command;

    /// How many stages the plan says are not there, if this tool's words are understood.
    fn planned(&self, words: &str) -> Option<usize> {
        let _ = words;
        None
    }

    /// How many stages have been executed since this was last asked.
    fn take_ran(&self, dir: &Path) -> Result<usize, String>;

    /// The number that the last stage has made.
    fn last_value(&self, dag: &Dag, dir: &Path) -> Result<i64, String>;
}

/// The first line that a command prints, if it runs and is content.
pub fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().to_owned();
    output.status.success().then_some(line)
}
