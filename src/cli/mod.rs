//! The command line: what can be asked, and which file answers it.

mod accept;
mod audit;
mod claims;
mod data;
mod exchange;
mod exit;
mod export;
mod eyes;
mod fetch;
mod file;
mod global;
mod graph;
mod history;
mod house;
mod manuscript;
mod nearest;
mod plan;
mod print;
mod reference;
mod replay;
mod report;
mod run;
mod serve;
mod spark;
mod stream;
mod verify;
mod which;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{CommandFactory, Parser, Subcommand};

use crate::diagnostic::{self, Diagnostic, Sources};
use exit::Exit;
use global::Global;
use print::PRINTS_JSON;

/// Experiment pipelines whose results can be trusted.
#[derive(Parser)]
#[command(version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ablate run scores --set train.lr=0.1   run what changed
  ablate report                          see what came out
  ablate audit 'scores[model=lstm]'      where a number came from

Exit codes: 0 good, 1 failed or result unusable, 2 wrong pipeline or command line, 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    /// Run what changed
    Run(run::Arguments),
    /// Show what would run and why, without running
    Plan(plan::PlanArguments),
    /// Compare a stage's key with the nearest stored one, field by field
    Explain(plan::ExplainArguments),
    /// Look at a result: schema, first rows, digest, file
    Show(data::ShowArguments),
    /// Judge the claims of claims.toml by the current results
    Claims(claims::Arguments),
    /// Where a result came from, to the raw data; prove it, check a proof
    Audit(audit::Arguments),
    /// Execute stored results again and compare
    Verify(verify::Arguments),
    /// Recompute what stored attacks say of themselves
    Replay(replay::Arguments),
    /// Keep a result in use though its code has changed
    Accept(accept::Arguments),
    /// Find numbers in a manuscript that are stale, wrong or typed by hand
    Lint(manuscript::LintArguments),
    /// Fill the references of a manuscript in
    Render(manuscript::RenderArguments),
    /// Compare what two stores made for the same keys
    Challenge(verify::ChallengeArguments),
    /// Write a run as one page: claims, results, figures, examples, provenance
    Report(report::Arguments),
    /// Serve reports, comparisons and live progress to a browser on this machine
    Serve(serve::ServeArguments),
    /// Compare the claims, tables and stages of two runs
    Compare(serve::CompareArguments),
    /// Write a result or a run for other tools: CSV, LaTeX, MLflow, RO-Crate and others
    Export(export::Arguments),
    /// List data sets, fetch them, check them, find them
    Data(fetch::Arguments),
    /// List past runs, or the stages of one
    Runs(history::RunsArguments),
    /// What two runs did differently
    Diff(history::DiffArguments),
    /// Give a run a name, which keeps its results from gc
    Tag(history::TagArguments),
    /// Draw the pipeline
    Graph(graph::Arguments),
    /// Perturb samples from standard input as they arrive, by an attack stage
    #[command(after_help = stream::FORMAT)]
    AttackStream(stream::Arguments),
    /// Remove results that recent runs and tags do not reach
    Gc(house::GcArguments),
    /// Check every stored byte against its digest
    Fsck(house::FsckArguments),
    /// List the stage kinds, or the parameters of one
    Kinds(data::KindsArguments),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Reads the command line, obeys it, and says how it went.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match obey(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit::Code(code)) => ExitCode::from(code),
        Err(Exit::Wrong(problems)) => {
            eprint!("{}", diagnostic::render(&problems.sources, &problems.list));
            ExitCode::from(2)
        }
        Err(Exit::Store(error)) => failed(Diagnostic::new(error.to_string())),
        Err(Exit::Failed(diagnostic)) => failed(diagnostic),
    }
}

fn failed(diagnostic: Diagnostic) -> ExitCode {
    eprint!("{}", diagnostic::render(&Sources::default(), &[diagnostic]));
    ExitCode::from(1)
}

fn obey(cli: Cli) -> Result<(), Exit> {
    let global = cli.global;
    PRINTS_JSON.store(global.json, Ordering::Relaxed);
    if let Some(directory) = &global.directory {
        std::env::set_current_dir(directory).map_err(|error| {
            Diagnostic::new(format!("cannot change to {}: {error}", directory.display()))
        })?;
    }
    stages::isolated::enable(global.memory);
    match cli.command {
        Command::Run(arguments) => run::run(&global, &arguments),
        Command::Plan(arguments) => plan::plan(&global, &arguments),
        Command::Explain(arguments) => plan::explain(&global, &arguments),
        Command::Show(arguments) => data::show(&global, &arguments),
        Command::Claims(arguments) => claims::claims(&global, &arguments),
        Command::Audit(arguments) => audit::audit(&global, &arguments),
        Command::Verify(arguments) => verify::verify(&global, &arguments),
        Command::Replay(arguments) => replay::replay(&global, &arguments),
        Command::Accept(arguments) => accept::accept(&global, &arguments),
        Command::Lint(arguments) => manuscript::lint(&global, &arguments),
        Command::Render(arguments) => manuscript::render(&global, &arguments),
        Command::Challenge(arguments) => verify::challenge(&global, &arguments),
        Command::Report(arguments) => report::report(&global, &arguments),
        Command::Serve(arguments) => serve::serve(&global, &arguments),
        Command::Compare(arguments) => serve::compare(&global, &arguments),
        Command::Export(arguments) => export::export(&global, &arguments),
        Command::Data(arguments) => fetch::data(&global, &arguments),
        Command::Runs(arguments) => history::runs(&global, &arguments),
        Command::Diff(arguments) => history::diff(&global, &arguments),
        Command::Tag(arguments) => history::tag(&global, &arguments),
        Command::Graph(arguments) => graph::graph(&global, &arguments),
        Command::AttackStream(arguments) => stream::stream(&global, &arguments),
        Command::Gc(arguments) => house::gc(&global, &arguments),
        Command::Fsck(arguments) => house::fsck(&global, &arguments),
        Command::Kinds(arguments) => data::kinds(&global, &arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "ablate", &mut std::io::stdout());
            Ok(())
        }
    }
}
