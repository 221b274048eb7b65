//! The engine beside its peers: the same DAGs for `ablate`, ninja, make, DVC and Snakemake, one
//! table of what each took, then the project's targets with met or not met.
//!
//! A slow figure never fails this program; a wrong result does.
//! `benches/README.md` says how to get the peers.

mod ablate;
mod bench;
mod cases;
mod dag;
mod measure;
mod peers;
mod row;
mod table;
mod targets;
mod tool;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use bench::Bench;
use dag::Dag;
use tool::{JOBS, Tool};

/// Measure ablate beside ninja, make, DVC and Snakemake.
#[derive(Parser)]
#[command(name = "engine")]
struct Arguments {
    /// Stages in the chains and fans
    #[arg(default_values_t = [10, 100, 1_000], value_parser = at_least_two)]
    sizes: Vec<usize>,
    /// Which peers, with commas: ninja,make,dvc,snakemake or none [default: all that are found]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    peers: Option<Vec<String>>,
    /// One round, and sizes up to 100 only
    #[arg(long)]
    quick: bool,
    /// Also what takes hours: DVC and Snakemake at every size
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// How often to measure what is fast; the tools take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// When to give up on one command, in seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// Measure another build of ablate
    #[arg(long, default_value = env!("CARGO_BIN_EXE_ablate"), hide_default_value = true)]
    ablate: PathBuf,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    arguments.sizes.sort_unstable();
    arguments.sizes.dedup();
    if arguments.quick {
        arguments.rounds = 1;
        arguments.sizes.retain(|size| *size <= 100);
    }
    let (tools, missing) = match find_tools(&arguments) {
        Ok(found) => found,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let timeout = Duration::from_secs(arguments.timeout);
    let mut bench = Bench::new(tools, arguments.rounds, timeout, arguments.full);
    for size in &arguments.sizes {
        bench.cold_and_noop(&Dag::chain(*size));
        bench.cold_and_noop(&Dag::fan(*size));
    }
    bench.one_change(&Dag::chain(100));
    bench.sweep(&Dag::sweep(100));
    if !arguments.quick {
        bench.plan_only(&Dag::chain(100_000));
        bench.plan_only(&Dag::grid(100));
    }

    println!(
        "\nAll with {JOBS} jobs, except DVC, which has no such option and runs one stage at a time."
    );
    println!("wall: median (least .. most); cpu: user + system, with children; peak: the largest");
    println!(
        "process. ablate syncs every result to the disk before it counts; the others do not.\n"
    );
    print!("{}", table::render(&bench.rows));
    for line in &missing {
        println!("{line}");
    }
    println!();
    print!("{}", targets::render(&bench.rows));
    match bench.wrong {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

type Tools = Vec<Box<dyn Tool>>;

/// The tools to measure, and a line for each that is not here.
fn find_tools(arguments: &Arguments) -> Result<(Tools, Vec<String>), String> {
    let mut tools: Tools = vec![Box::new(ablate::Ablate {
        program: arguments.ablate.clone(),
    })];
    let mut missing = Vec::new();
    let mut peers = peers::all();
    if let Some(names) = &arguments.peers {
        let known: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        for name in names.iter().filter(|name| *name != "none") {
            if !known.contains(&name.as_str()) {
                return Err(format!(
                    "no peer is called `{name}`: there are {}",
                    known.join(", ")
                ));
            }
        }
        peers.retain(|peer| names.iter().any(|name| name == peer.name()));
    }
    tools.extend(peers);
    tools.retain(|tool| match tool.version() {
        Some(version) => {
            println!("{:<10} {version}", tool.name());
            true
        }
        None => {
            let line = format!("{}: skipped, not found; {}", tool.name(), tool.how_to_get());
            println!("{line}");
            missing.push(line);
            false
        }
    });
    match tools.first().map(|tool| tool.name()) {
        Some("ablate") => Ok((tools, missing)),
        _ => Err(format!("{} does not run", arguments.ablate.display())),
    }
}

fn at_least_two(text: &str) -> Result<usize, String> {
    let size = text.replace([',', '_'], "").parse::<usize>();
    size.ok()
        .filter(|size| *size >= 2)
        .ok_or_else(|| "a number of stages, at least 2".to_owned())
}
