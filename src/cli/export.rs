//! `ablate export`: results for other tools.

use std::path::PathBuf;

use arrow::record_batch::RecordBatch;
use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::Global;
use super::print::{note, out};
use super::run_selection::{self, RunOption};
use super::{export_run, file, report};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::publish::report::export::{self, Grid, mlflow, textattack};
use crate::publish::report::summary::invocation;
use crate::publish::report::{examples, tables};
use crate::results::columns;
use crate::results::recorded::{self, Recorded};
use crate::results::reference::split_output;
use crate::results::table::{self, NoTable};

/// What `export` takes.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("form").required(true)))]
pub struct Arguments {
    /// The result: `stage`, `stage.output` or `stage[axis=value].output`
    #[arg(
        required_unless_present_any = ["mlflow", "ro_crate", "openlineage"],
        conflicts_with_all = ["mlflow", "ro_crate", "openlineage"]
    )]
    result: Option<String>,
    /// Comma-separated values
    #[arg(long, group = "form")]
    csv: bool,
    /// Parquet: the bytes of the store, if it is one table there
    #[arg(long, group = "form")]
    parquet: bool,
    /// A table in Markdown; tidy results as the paper prints them
    #[arg(long, group = "form")]
    markdown: bool,
    /// A table in LaTeX (booktabs); tidy results as the paper prints them
    #[arg(long, group = "form")]
    latex: bool,
    /// The examples of an attack in the layout of TextAttack's CSV log
    #[arg(long, group = "form")]
    textattack: bool,
    /// The whole run in the layout of MLflow's file store
    #[arg(long, group = "form")]
    mlflow: bool,
    /// The whole run as a Workflow Run RO-Crate: a new folder, or a file that ends in .zip
    #[arg(long, value_name = "DIR|FILE.zip", group = "form")]
    ro_crate: Option<PathBuf>,
    /// The whole run as OpenLineage events, one per line
    #[arg(long, group = "form")]
    openlineage: bool,
    /// For tidy results: one table of the paper
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["textattack", "mlflow", "ro_crate", "openlineage"]
    )]
    table: Option<String>,
    #[command(flatten)]
    which: RunOption,
    /// The file to write [default: standard output; for --mlflow the folder mlruns]
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["ro_crate", "openlineage"])]
    output: Option<PathBuf>,
}

/// Writes a result, or a run, in the requested format.
pub fn export(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if let Some(path) = &arguments.ro_crate {
        return export_run::write_crate(global, &arguments.which, path);
    }
    if arguments.openlineage {
        return export_run::print_events(global, &arguments.which);
    }
    let store = global.needed_store()?;
    let run = run_selection::shown(global, &store, &arguments.which)?;
    let Some(result) = &arguments.result else {
        return whole_run(global, arguments, &store, run);
    };
    let recorded = recorded::gather(&store, run)?;
    let found = || {
        table::of_run(&store, &recorded, result)
            .map_err(|no| no_result(global, &recorded, "export", result, no))
    };
    let bytes = match () {
        () if arguments.textattack => examples_of(&store, &recorded, result, found()?.1)?,
        () if arguments.csv => {
            let (table, step) = found()?;
            let rows = rows_of(arguments, result, table)?;
            let papers = tables::read(step, 0, &recorded, &rows);
            export::csv(&export::with_intervals(rows, &papers.unwrap_or_default()))
        }
        () if arguments.parquet => match &arguments.table {
            Some(_) => store::encode(&rows_of(arguments, result, found()?.0)?)?,
            None => parquet(&store, &recorded, result, &found()?.0)?,
        },
        () => {
            let (table, step) = found()?;
            let grids = grids(&recorded, result, step, &table, arguments.table.as_deref())?;
            printed(&grids, arguments.latex)
        }
    };
    match &arguments.output {
        Some(path) => file::write(path, &bytes),
        None => super::print::print_bytes(&bytes),
    }
}

/// Tables as LaTeX or Markdown.
fn printed(grids: &[Grid], latex: bool) -> Vec<u8> {
    let form = match latex {
        true => Grid::latex,
        false => Grid::markdown,
    };
    let texts: Vec<String> = grids.iter().map(form).collect();
    texts.join("\n").into_bytes()
}

/// Why a result of a run is not available.
pub fn no_result(
    global: &Global,
    recorded: &Recorded,
    doing: &str,
    result: &str,
    no: NoTable,
) -> Exit {
    let run = recorded.run.id;
    match no {
        NoTable::Unknown(why, helps) => {
            let problem = Diagnostic::new(format!("cannot {doing} `{result}`: {why}"));
            let problem = helps.into_iter().fold(problem, Diagnostic::help);
            problem
                .help(format!("`ablate runs {run}` lists what that run made"))
                .into()
        }
        NoTable::Unusable(why) => Exit::Failed(
            Diagnostic::new(format!("cannot {doing} `{result}`: {why}"))
                .help("`ablate fsck` checks the whole store")
                .help(format!("`{}` recomputes results", global.command("run"))),
        ),
    }
}

/// Tidy results are tables of a paper, one or all; anything else is itself.
fn grids(
    recorded: &Recorded,
    result: &str,
    step: usize,
    table: &RecordBatch,
    wanted: Option<&str>,
) -> Result<Vec<Grid>, Exit> {
    let tidy = tables::is_tidy(&store::schema_text(table.schema_ref()));
    let papers = tidy
        .then(|| tables::read(step, 0, recorded, table))
        .flatten();
    let Some(papers) = papers else {
        return match wanted {
            None => Ok(vec![export::plain(result, table)]),
            Some(_) => Err(not_tidy(result)),
        };
    };
    let chosen = papers
        .iter()
        .filter(|paper| wanted.is_none_or(|name| paper.name == name));
    let chosen: Vec<Grid> = chosen.map(export::printed).collect();
    match (chosen.is_empty(), wanted) {
        (true, Some(name)) => {
            let known = papers.iter().map(|paper| paper.name.clone()).collect();
            Err(no_table(result, name, known))
        }
        _ => Ok(chosen),
    }
}

/// All rows, or those of one table of the paper.
fn rows_of(arguments: &Arguments, result: &str, table: RecordBatch) -> Result<RecordBatch, Exit> {
    let Some(wanted) = &arguments.table else {
        return Ok(table);
    };
    let tidy = tables::is_tidy(&store::schema_text(table.schema_ref()));
    let names = tidy.then(|| columns::texts(&table, "table")).flatten();
    let names = names.ok_or_else(|| not_tidy(result))?;
    let mask: Vec<bool> = names.iter().map(|name| name == wanted).collect();
    if !mask.contains(&true) {
        return Err(no_table(result, wanted, names));
    }
    let rows = arrow::compute::filter_record_batch(&table, &mask.into());
    Ok(rows.expect("a flag for each row"))
}

fn not_tidy(result: &str) -> Exit {
    Diagnostic::new(format!("`{result}` holds no tables of a paper"))
        .help("--table is for tidy results: columns table, row, col and value")
        .into()
}

fn no_table(result: &str, name: &str, known: Vec<String>) -> Exit {
    let mut list: Vec<&str> = Vec::new();
    for known in &known {
        if !list.contains(&known.as_str()) {
            list.push(known);
        }
    }
    Diagnostic::new(format!("`{result}` has no table `{name}`"))
        .maybe_help(crate::diagnostic::nearest(name, list.iter().copied()))
        .help(format!("tables: {}", list.join(", ")))
        .into()
}

/// The object itself if the result is one, so that its digest stays what it is.
fn parquet(
    store: &Store,
    recorded: &Recorded,
    result: &str,
    table: &RecordBatch,
) -> Result<Vec<u8>, Exit> {
    if let Ok(found) = table::outputs(recorded, result)
        && let [(_, found)] = found[..]
        && let Ok(bytes) = std::fs::read(store.object_path(&found.digest))
    {
        return Ok(bytes);
    }
    Ok(store::encode(table)?)
}

fn examples_of(
    store: &Store,
    recorded: &Recorded,
    result: &str,
    at: usize,
) -> Result<Vec<u8>, Exit> {
    let step = &recorded.steps[at];
    let wrong = |why: &str| Diagnostic::new(format!("`{result}` {why}"));
    if step.name() == split_output(result).0 && step.label != step.name() {
        return Err(wrong("has several instances")
            .help(format!(
                "a log is of one attack: ablate export '{}' --textattack",
                step.label
            ))
            .into());
    }
    let found = examples::of_step(store, recorded, at);
    let texts = found.filter(|found| found.drawings.is_empty());
    let texts = texts.ok_or_else(|| {
        wrong("has no examples of an attack on texts")
            .help("--textattack needs the stage of an attack on texts")
    })?;
    let table = step
        .output(stages::tables::examples::SCHEMA.name)
        .and_then(|output| recorded::table(store, output));
    let cost = |name: &str| {
        table
            .as_ref()
            .and_then(|table| columns::wholes(table, name))
    };
    let costs = [cost("forward"), cost("backward")];
    let rows = texts.tables[0].rows.len();
    let queries = (0..rows).map(|row| costs.iter().flatten().filter_map(|cost| cost[row]).sum());
    Ok(textattack::csv(
        &texts,
        &texts.tables[0],
        &queries.collect::<Vec<i64>>(),
    ))
}

fn whole_run(
    global: &Global,
    arguments: &Arguments,
    store: &Store,
    run: store::Run,
) -> Result<(), Exit> {
    let claims = report::judged(&global.file, store, &run);
    if let Err(why) = &claims {
        note!(
            "ablate: the claims cannot be judged: {}",
            report::first_line(why)
        );
    }
    let recorded = recorded::gather(store, run)?;
    let lost = crate::publish::report::lost(store, &recorded);
    if let Some(lost) = lost.iter().find(|lost| lost.wrong) {
        let diagnostic = Diagnostic::new(lost.what.clone());
        return Err(Exit::Failed(
            diagnostic.help(format!("`{}` recomputes it", global.command("run"))),
        ));
    }
    let folder = arguments.output.clone().unwrap_or("mlruns".into());
    let written = std::path::absolute(&folder).and_then(|root| {
        let files = mlflow::files(store, &recorded, &claims.unwrap_or_default(), &root);
        mlflow::write(&root, &files).map(|()| files.len())
    });
    let count = written.map_err(|error| {
        let why = match folder.is_dir() || !folder.exists() {
            true => error.kind().to_string(),
            false => "it is not a folder".to_owned(),
        };
        Diagnostic::new(format!("cannot write to `{}`: {why}", folder.display()))
            .help("-o names another folder")
    })?;
    let run = recorded.run.id;
    let named = report::named(run, &invocation(&recorded.run));
    match (global.json, global.quiet) {
        (true, _) => out!(
            "{}",
            json!({ "run": run, "folder": folder, "files": count })
        ),
        (false, true) => {}
        (false, false) => out!("{named}: {} in {}", plural(count, "file"), folder.display()),
    }
    Ok(())
}
