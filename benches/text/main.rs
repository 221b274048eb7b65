//! Text to arrays beside its peers, in one run: `cargo bench --bench text -- --python VENV/bin/python`.
//!
//! Every figure is of a process of its own, so that peak memory is its own too; the sides take
//! turns, so that whatever else the machine does falls on both. Nothing is installed: a peer
//! that is not there is skipped with a word on how to get it, data that is not there likewise.
//! A slow figure never fails this program; a wrong number of tokens does.

mod cases;
#[path = "../side/kinds.rs"]
mod kinds;
mod ours;
#[path = "../side/sample.rs"]
mod sample;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// The program's own, so that its memory is measured as it is.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure dataset, tokenize and embed beside HF tokenizers, scikit-learn, pandas and gensim.
#[derive(Parser)]
#[command(name = "text")]
struct Arguments {
    /// Which cases: imdb, glove, skip-gram [default: all]
    cases: Vec<String>,
    /// The Python that has the peers
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// A folder of copies of the data sets' files [also: ABLATE_MIRROR]
    #[arg(long)]
    mirror: Option<PathBuf>,
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
    // Processes are started in other folders too.
    let mirror = mirror.map(|mirror| std::path::absolute(&mirror).unwrap_or(mirror));
    if let Some((job, rest)) = arguments.job.split_first() {
        return ours::job(job, rest, mirror);
    }
    let bench = cases::Bench {
        python: arguments.python,
        mirror,
        rounds: arguments.rounds,
    };
    let mut good = true;
    for (name, case) in cases::CASES {
        if arguments.cases.is_empty() || arguments.cases.iter().any(|wanted| wanted == name) {
            good &= case(&bench);
        }
    }
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
