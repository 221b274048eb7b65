//! `ablate sql`: one query over the results of stages and over the record of all runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow::record_batch::RecordBatch;
use clap::Args;
use store::{PROVENANCE, Run, Store, Value};

use super::exit::Exit;
use super::export::no_result;
use super::file;
use super::fitted_table::{fitted, width};
use super::global::Global;
use super::print::{out, print_bytes};
use super::run_selection::{self, RunOption};
use crate::diagnostic::Diagnostic;
use crate::publish::report::export;
use crate::results::recorded::{self, Recorded};
use crate::results::table;

/// What `--help` says after the options.
pub const TABLES: &str = "\
Tables are stages, as `ablate show` names them, and the record of all runs: ablate_runs, ablate_executions, ablate_uses,
ablate_inputs, ablate_outputs and ablate_tags (docs/read-results.md describes their columns).

  ablate sql 'SELECT \"row\", AVG(value) FROM results GROUP BY \"row\"'
  ablate sql 'SELECT COUNT(*) FROM \"attacked[seed=1].examples\" WHERE success'
  ablate sql --all-runs 'SELECT run, MAX(value) FROM results GROUP BY run'
  ablate sql 'SELECT kind, SUM(cpu_seconds) AS s FROM ablate_executions GROUP BY kind ORDER BY s DESC'";

/// What names of the record begin with.
const PREFIX: &str = "ablate_";

/// What `sql` takes.
#[derive(Args)]
pub struct Arguments {
    /// One SELECT in polars' SQL
    query: String,
    #[command(flatten)]
    which: RunOption,
    /// Read stages of all runs of this pipeline, with a first column `run`
    #[arg(long, conflicts_with = "run")]
    all_runs: bool,
    /// Comma-separated values
    #[arg(long, conflicts_with_all = ["parquet", "json"])]
    csv: bool,
    /// Parquet
    #[arg(long, conflicts_with = "json")]
    parquet: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Answers the query.
pub fn sql(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let names = stages::sql::tables_of(&arguments.query).map_err(|error| {
        Diagnostic::new(format!("the query cannot be used: {}", error.message))
            .maybe_help(error.help)
    })?;
    let store = global.needed_store()?;
    let mut runs: Option<Vec<Recorded>> = None;
    let mut tables = BTreeMap::new();
    for name in names {
        let found = match name.strip_prefix(PREFIX) {
            Some(known) => of_record(&store, known)?,
            None => {
                if runs.is_none() {
                    runs = Some(recorded_runs(global, arguments, &store)?);
                }
                let runs = runs.as_deref().unwrap_or_default();
                of_stage(global, &store, runs, &name, arguments.all_runs)?
            }
        };
        tables.insert(name, found);
    }
    let stopped = || false;
    let answer = stages::sql::query(tables, &arguments.query, stopped).map_err(failed)?;
    print(global, arguments, &answer)
}

/// Why a query failed. In a stage it would be about inputs; here tables are stages.
fn failed(failure: stages::Failure) -> Diagnostic {
    let message = format!("the query failed: {}", failure.message);
    match message.contains("no input is named") {
        true => Diagnostic::new(message.replace("no input is named", "no table is named"))
            .help("tables are stages; a name with dots or brackets is written in double quotes, as in \"attacked.examples\" or \"attacked[seed=1]\""),
        false => Diagnostic::new(message).maybe_help(failure.help),
    }
}

/// The runs whose results are read: the current results' one, a past one, or all.
fn recorded_runs(
    global: &Global,
    arguments: &Arguments,
    store: &Store,
) -> Result<Vec<Recorded>, Exit> {
    let mut runs: Vec<Run> = match arguments.all_runs {
        true => run_selection::own_runs(global, store, usize::MAX)?,
        false => vec![run_selection::shown(global, store, &arguments.which)?],
    };
    runs.reverse();
    let gathered = runs.into_iter().map(|run| recorded::gather(store, run));
    Ok(gathered.collect::<Result<_, _>>()?)
}

/// A table of the record.
fn of_record(store: &Store, name: &str) -> Result<RecordBatch, Exit> {
    let known = PROVENANCE.iter().find(|table| table.name == name);
    let known = known.ok_or_else(|| {
        let names = PROVENANCE
            .iter()
            .map(|table| format!("{PREFIX}{}", table.name));
        Diagnostic::new(format!("no table `{PREFIX}{name}`")).help(format!(
            "the record of all runs is in {}",
            names.collect::<Vec<_>>().join(", ")
        ))
    })?;
    Ok(store.provenance(known)?)
}

/// The table of a stage, of one run or of all that have it.
fn of_stage(
    global: &Global,
    store: &Store,
    runs: &[Recorded],
    name: &str,
    all: bool,
) -> Result<RecordBatch, Exit> {
    let mut parts = Vec::new();
    let mut last = None;
    for recorded in runs {
        match table::of_run(store, recorded, name) {
            Ok((table, _)) => {
                let run = recorded.run.id.0;
                parts.push((format!("{name} of run {run}"), vec![Value::Int(run)], table));
            }
            // Not every run made everything.
            Err(no) => last = Some(no_result(global, recorded, "query", name, no)),
        }
    }
    match (parts.is_empty(), all, last) {
        (true, _, Some(error)) => Err(error),
        (true, _, None) => Err(Diagnostic::new(format!("no run has made `{name}`"))
            .help(format!("`{}` makes it", global.command("run")))
            .into()),
        (false, false, _) => Ok(parts.swap_remove(0).2),
        (false, true, _) => stages::collect(&["run"], &parts).map_err(|failure| {
            Diagnostic::new(failure.message)
                .maybe_help(failure.help)
                .into()
        }),
    }
}

fn print(global: &Global, arguments: &Arguments, answer: &RecordBatch) -> Result<(), Exit> {
    let bytes = match () {
        () if global.json => {
            let mut lines = arrow::json::LineDelimitedWriter::new(Vec::new());
            let written = lines.write(answer).and_then(|()| lines.finish());
            written.map_err(|error| Diagnostic::new(format!("cannot write JSON: {error}")))?;
            lines.into_inner()
        }
        () if arguments.csv => export::csv(answer),
        () if arguments.parquet => store::encode(answer)?,
        () => {
            let (text, left_out) = fitted(answer, width());
            out!("{text}");
            if !left_out.is_empty() {
                out!("not shown: {} (--csv has all)", left_out.join(", "));
            }
            let rows = answer.num_rows();
            out!("{rows} {}", if rows == 1 { "row" } else { "rows" });
            return Ok(());
        }
    };
    match &arguments.output {
        Some(path) => file::write(path, &bytes),
        None => print_bytes(&bytes),
    }
}
