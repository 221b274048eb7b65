//! The parts of a paper's attacks beside their peers, in one run:
//! `cargo bench --bench attack -- --python VENV/bin/python --torch VENV/bin/python`.
//!
//! Every figure is of a process of its own; the sides take turns, so that whatever else the machine
//! does falls on both. All read the same files, which are made once from IMDb and GloVe. Nothing is
//! installed: what is not there is skipped with a word on how to get it. A slow figure never fails
//! this program; a wrong answer does.

mod attack;
mod cases;
mod characters;
mod data;
mod greedy;
#[path = "../side/kinds.rs"]
mod kinds;
mod linear;
mod network;
mod projection;
#[path = "../side/sample.rs"]
mod sample;
mod windows;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// The program's own, so that what is measured is what a user gets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure HotFlip, RNN-Test, JSMA, linear classifiers and the LSTM beside scikit-learn, PyTorch and TextAttack.
#[derive(Parser)]
#[command(name = "attack")]
struct Arguments {
    /// Which cases: characters, memory, words, greedy, windows, projection, linear, lstm, attack [default: all]
    cases: Vec<String>,
    /// The Python that has scikit-learn
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The Python that has PyTorch [default: the same]
    #[arg(long)]
    torch: Option<PathBuf>,
    /// A folder of copies of the data sets' files [also: ABLATE_MIRROR]
    #[arg(long)]
    mirror: Option<PathBuf>,
    /// Where to keep what both sides read, to be used again [default: a temporary folder]
    #[arg(long)]
    keep: Option<PathBuf>,
    /// How often to measure; the sides take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Do one job, print what it took, and end: this program calls itself
    #[arg(long, hide = true, num_args = 1.., value_name = "JOB")]
    job: Vec<String>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = || std::env::var_os("ABLATE_MIRROR").map(PathBuf::from);
    let mirror = arguments.mirror.or_else(environment);
    if let Some((job, rest)) = arguments.job.split_first() {
        return kinds::report(work(job, rest, mirror));
    }
    let torch = arguments.torch.unwrap_or(arguments.python.clone());
    let bench = cases::Bench {
        python: arguments.python,
        torch,
        rounds: arguments.rounds,
    };
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = arguments.keep.as_deref().unwrap_or(temporary.path());
    match cases::run(&bench, dir, mirror.as_deref(), &arguments.cases) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// One job of ours. The files that it reads are in the folder that is its first word.
fn work(job: &str, rest: &[String], mirror: Option<PathBuf>) -> Result<serde_json::Value, String> {
    if job == "warm" {
        return kinds::warm();
    }
    let (dir, rest) = rest.split_first().ok_or("no folder")?;
    let dir = Path::new(dir);
    match (job, rest) {
        ("data", []) => data::make(&kinds::home(mirror), dir),
        ("best", []) => projection::best(dir),
        ("svm", []) => linear::svm(dir),
        ("bayes", []) => linear::bayes(dir),
        ("lstm", []) => network::steps(dir),
        ("attack", [name]) => attack::attack(dir, name),
        ("char-data", []) => characters::data(dir),
        ("characters", [name, items]) => characters::attack(dir, name, items),
        ("word-data", []) => words::data(&kinds::home(mirror), dir),
        ("words", [rules, items]) => words::attack(dir, rules, items),
        ("greedy-data", []) => greedy::data(&kinds::home(mirror), dir),
        ("greedy", []) => greedy::attack(dir),
        ("greedy-whole", [items]) => greedy::whole(dir, items),
        ("window-data", []) => windows::data(&kinds::home(mirror), dir),
        ("coverage", []) => windows::coverage(),
        ("windows", [name]) => windows::test(dir, name),
        _ => Err(format!("no job `{job}`")),
    }
}
