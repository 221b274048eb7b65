//! The command line: what can be asked, and which file answers it.

mod accept;
mod audit;
mod claims;
mod data;
mod exchange;
mod export;
mod eyes;
mod fetch;
mod file;
mod graph;
mod history;
mod house;
mod manuscript;
mod nearest;
mod plan;
mod reference;
mod replay;
mod report;
mod run;
mod serve;
mod spark;
mod stream;
mod verify;
mod which;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, CommandFactory, Parser, Subcommand};
use store::Store;

use crate::config::{self, Pipeline, Request};
use crate::diagnostic::{self, Diagnostic, Problems, Sources};
use crate::visible;

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

/// Options that every command takes.
#[derive(Args)]
struct Global {
    /// The pipeline file
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        default_value = "pipeline.toml"
    )]
    file: PathBuf,
    /// Change to this folder first
    #[arg(short = 'C', long = "directory", global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Where results are kept [default: .ablate beside the pipeline file]
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Lay [profile.NAME] over the pipeline
    #[arg(long, global = true, value_name = "NAME")]
    profile: Option<String>,
    /// Change a value for this run: stage.param=value
    #[arg(long, global = true, value_name = "STAGE.PARAM=VALUE")]
    set: Vec<String>,
    /// Memory for a query or foreign file [default: a quarter of all]
    #[arg(long, global = true, value_name = "SIZE")]
    memory: Option<stages::isolated::Budget>,
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    json: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    quiet: bool,
}

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

/// Why a command ends early.
pub enum Exit {
    /// What the user wrote is wrong: code 2.
    Wrong(Problems),
    /// The store failed: code 1.
    Store(store::Error),
    /// What was asked for cannot be had: code 1.
    Failed(Diagnostic),
    /// Ends with this code; everything is already said.
    Code(u8),
}

impl From<Problems> for Exit {
    fn from(problems: Problems) -> Exit {
        Exit::Wrong(problems)
    }
}

impl From<Diagnostic> for Exit {
    fn from(diagnostic: Diagnostic) -> Exit {
        Exit::Wrong(Problems::plain(diagnostic))
    }
}

impl From<store::Error> for Exit {
    fn from(error: store::Error) -> Exit {
        Exit::Store(error)
    }
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

impl Global {
    fn pipeline(&self) -> Result<Pipeline, Exit> {
        Ok(config::read(&Request {
            file: self.file.clone(),
            profile: self.profile.clone(),
            sets: self.set.clone(),
        })?)
    }

    fn store_path(&self) -> PathBuf {
        match &self.store {
            Some(path) => path.clone(),
            None => self
                .file
                .parent()
                .unwrap_or(std::path::Path::new(""))
                .join(".ablate"),
        }
    }

    /// The store, if there is one. Never makes one.
    fn existing_store(&self) -> Result<Option<Store>, Exit> {
        Ok(Store::open_existing(&self.store_path())?)
    }

    /// The store, or an error that says how one comes to be.
    fn needed_store(&self) -> Result<Store, Exit> {
        let root = self.store_path();
        let store = Store::open_existing(&root)?;
        store.ok_or(Exit::Store(store::Error::NoStore { root }))
    }
}

/// A reader that has gone away ends the program quietly; a full disk does not.
fn unprinted(error: std::io::Error) -> Exit {
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        eprintln!("error: cannot print: {error}");
        return Exit::Code(1);
    }
    Exit::Code(0)
}

/// Attaches the pipeline's text to errors that point into it.
fn in_pipeline<T>(pipeline: &Pipeline, result: Result<T, Vec<Diagnostic>>) -> Result<T, Exit> {
    result.map_err(|list| {
        eprint!("{}", diagnostic::render(&pipeline.sources, &list));
        Exit::Code(2)
    })
}

/// Whether this process prints JSON, in which hidden signs are written as JSON writes them.
static PRINTS_JSON: AtomicBool = AtomicBool::new(false);

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
            let problem = Diagnostic::new("this is not text, and standard output is a terminal");
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
        $crate::cli::print_note(format_args!($($part)*))
    };
}
pub(crate) use note;

/// Prints a line to standard output.
macro_rules! out {
    ($($part:tt)*) => {{
        $crate::cli::print_line(format_args!($($part)*))?;
    }};
}
pub(crate) use out;
