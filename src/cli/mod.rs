//! The command line: one file per command, named for it; the others
//! are what commands share.

mod ablation;
mod accept;
mod attack_stream;
mod attacks;
mod audit;
mod certify;
mod challenge;
mod claims;
mod command_line;
mod compare;
mod compare_items;
mod completions;
mod data;
mod diff;
mod exit;
mod explain;
mod export;
mod export_run;
mod fetch_progress;
mod file;
mod fitted_table;
mod fsck;
mod gc;
mod global;
mod graph;
mod init;
mod key;
mod kinds;
mod kinds_markdown;
mod lint;
mod lock;
mod locked;
mod ls;
mod manuscript;
mod multiverse;
mod nearest_words;
mod paper_table;
mod places;
mod plan;
mod predict;
mod print;
mod pull;
mod queue;
mod remote;
mod render;
mod replay;
mod report;
mod run;
mod run_selection;
mod runs;
mod safetensors;
mod schema;
mod secrets;
mod serve;
mod show;
mod sparkline;
mod sql;
mod stop;
mod tag;
mod verdicts;
mod verify;
mod worker;
mod worlds;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{FromArgMatches, Parser, Subcommand};

use crate::diagnostic::{self, Diagnostic, Sources};
use crate::huge_pages;
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
Exit codes: 0 success, 1 failure or unusable result, 2 invalid input, 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    /// Write a pipeline to start from, on your own file or on synthetic data
    Init(init::Arguments),
    /// Run what changed
    Run(run::Arguments),
    /// Execute a task of a run that is driven from another machine
    Worker(worker::Arguments),
    /// Show what would run and why, without running
    #[command(visible_alias = "status")]
    Plan(plan::Arguments),
    /// Explain why a stage will run, field by field
    Explain(explain::Arguments),
    /// List stages and their results
    Ls(ls::Arguments),
    /// Show a result: schema, first rows, digest, file
    Show(show::Arguments),
    /// Query results and the record of all runs in SQL
    #[command(after_help = sql::TABLES)]
    Sql(sql::Arguments),
    /// Judge the claims of claims.toml by the current results
    Claims(claims::Arguments),
    /// Compare the variants of an ablation with its base
    Ablation(ablation::Arguments),
    /// Take each alternative of [choices], and see which verdicts turn
    Multiverse(multiverse::Arguments),
    /// Trace a result back to the raw data; prove it, check a proof
    Audit(audit::Arguments),
    /// Execute stored results again and compare
    Verify(verify::Arguments),
    /// Re-check stored attack results
    Replay(replay::Arguments),
    /// Keep a result in use although its code has changed
    Accept(accept::Arguments),
    /// Find numbers in a manuscript that are stale, wrong or typed by hand
    Lint(lint::Arguments),
    /// Resolve the references in a manuscript
    Render(render::Arguments),
    /// Write results.lock: what each stage gave, to be committed
    Lock(lock::Arguments),
    /// Compare results with those of another store, or with results.lock
    Challenge(challenge::Arguments),
    /// Sign what you found after a rerun, for others to check
    Certify(certify::Arguments),
    /// Write a run as one page: claims, results, figures, examples, provenance
    Report(report::Arguments),
    /// Serve reports, comparisons and live progress to a browser on this machine
    Serve(serve::Arguments),
    /// Compare two runs: claims, tables, stages; or two results item by item
    Compare(compare::Arguments),
    /// Export a result or a run: CSV, LaTeX, MLflow, RO-Crate and others
    Export(export::Arguments),
    /// List, fetch, verify and locate data sets
    Data(data::Arguments),
    /// List past runs, or the stages of one
    #[command(visible_alias = "log")]
    Runs(runs::Arguments),
    /// Show what two runs did differently
    Diff(diff::Arguments),
    /// Name a run, which keeps its results from gc
    Tag(tag::Arguments),
    /// Draw the pipeline
    Graph(graph::Arguments),
    /// Perturb samples from standard input as they arrive, with an attack stage
    #[command(after_help = attack_stream::FORMAT)]
    AttackStream(attack_stream::Arguments),
    /// Remove results that no recent or tagged run uses
    #[command(visible_alias = "clean")]
    Gc(gc::Arguments),
    /// Check every stored byte against its digest
    Fsck(fsck::Arguments),
    /// Share results with other machines: add a bucket or folder, list, check, tidy
    Remote(remote::Arguments),
    /// Put results into a remote, signed with your key
    Push(remote::PushArguments),
    /// Take results of people you trust from a remote, executing nothing
    Pull(pull::Arguments),
    /// Your signing key, and whose results you take
    Key(key::Arguments),
    /// Ask a stored classifier about texts
    #[command(after_help = predict::FORMAT)]
    Predict(predict::Arguments),
    /// List the attacks with what they need, their budget and their paper, or the parameters of one
    Attacks(attacks::Arguments),
    /// List the stage kinds, or the parameters of one
    Kinds(kinds::Arguments),
    /// Print the JSON Schema of a file, for editors
    Schema(schema::Arguments),
    /// Print completions for a shell
    Completions(completions::Arguments),
}

/// Reads the command line, runs the command, and reports how it went.
pub fn main() -> ExitCode {
    let mut command = command_line::command::<Cli>();
    let matches = command.clone().get_matches();
    command_line::refuse_ignored(&mut command, &matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match dispatch(cli) {
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

fn dispatch(cli: Cli) -> Result<(), Exit> {
    let global = cli.global;
    PRINTS_JSON.store(global.json, Ordering::Relaxed);
    if let Some(directory) = &global.directory {
        std::env::set_current_dir(directory).map_err(|error| {
            Diagnostic::new(format!("cannot change to {}: {error}", directory.display()))
        })?;
    }
    stages::isolated::enable(global.memory);
    if matches!(cli.command, Command::Run(_) | Command::Plan(_)) {
        huge_pages::avoid();
    }
    match cli.command {
        Command::Init(arguments) => init::init(&global, &arguments),
        Command::Run(arguments) => run::run(&global, &arguments),
        Command::Worker(arguments) => worker::worker(&arguments),
        Command::Plan(arguments) => plan::plan(&global, &arguments),
        Command::Explain(arguments) => explain::explain(&global, &arguments),
        Command::Ls(arguments) => ls::ls(&global, &arguments),
        Command::Show(arguments) => show::show(&global, &arguments),
        Command::Sql(arguments) => sql::sql(&global, &arguments),
        Command::Claims(arguments) => claims::claims(&global, &arguments),
        Command::Ablation(arguments) => ablation::ablation(&global, &arguments),
        Command::Multiverse(arguments) => multiverse::multiverse(&global, &arguments),
        Command::Audit(arguments) => audit::audit(&global, &arguments),
        Command::Verify(arguments) => verify::verify(&global, &arguments),
        Command::Replay(arguments) => replay::replay(&global, &arguments),
        Command::Accept(arguments) => accept::accept(&global, &arguments),
        Command::Lint(arguments) => lint::lint(&global, &arguments),
        Command::Render(arguments) => render::render(&global, &arguments),
        Command::Lock(arguments) => lock::lock(&global, &arguments),
        Command::Challenge(arguments) => challenge::challenge(&global, &arguments),
        Command::Certify(arguments) => certify::certify(&global, &arguments),
        Command::Report(arguments) => report::report(&global, &arguments),
        Command::Serve(arguments) => serve::serve(&global, &arguments),
        Command::Compare(arguments) => compare::compare(&global, &arguments),
        Command::Export(arguments) => export::export(&global, &arguments),
        Command::Data(arguments) => data::data(&global, &arguments),
        Command::Runs(arguments) => runs::runs(&global, &arguments),
        Command::Diff(arguments) => diff::diff(&global, &arguments),
        Command::Tag(arguments) => tag::tag(&global, &arguments),
        Command::Graph(arguments) => graph::graph(&global, &arguments),
        Command::AttackStream(arguments) => attack_stream::stream(&global, &arguments),
        Command::Gc(arguments) => gc::gc(&global, &arguments),
        Command::Fsck(arguments) => fsck::fsck(&global, &arguments),
        Command::Remote(arguments) => remote::remote(&global, &arguments),
        Command::Push(arguments) => remote::push_results(&global, &arguments),
        Command::Pull(arguments) => pull::pull(&global, &arguments),
        Command::Key(arguments) => key::key(&global, &arguments),
        Command::Predict(arguments) => predict::predict(&global, &arguments),
        Command::Attacks(arguments) => attacks::attacks(&global, &arguments),
        Command::Kinds(arguments) => kinds::kinds(&global, &arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Completions(arguments) => {
            completions::completions(command_line::command::<Cli>(), &arguments)
        }
    }
}
