//! `ablate export`: results for other tools. `ablate show MODEL --safetensors FILE`: a model's
//! weights, for other programs and for `start`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatch;
use clap::Args;
use serde_json::json;
use store::Store;

use super::{Exit, Global, exchange, history, out, report};
use crate::diagnostic::Diagnostic;
use crate::report::export::{self, grid::Grid, mlflow, textattack};
use crate::report::gather::{self, Recorded};
use crate::report::{columns, examples, lookup, tables};
use crate::results;

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
    /// The whole run as OpenLineage events, one a line
    #[arg(long, group = "form")]
    openlineage: bool,
    /// For tidy results in Markdown or LaTeX: one table of the paper
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The run: number, tag, `last` or `prev`
    #[arg(long, value_name = "RUN", default_value = "last")]
    run: String,
    /// The file to write [default: standard output; for --mlflow the folder mlruns]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes a result, or a run, in the form that was asked for.
pub fn export(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if let Some(path) = &arguments.ro_crate {
        return exchange::write_crate(global, &arguments.run, path);
    }
    if arguments.openlineage {
        return exchange::print_events(global, &arguments.run);
    }
    let store = global.needed_store()?;
    let run = history::find(&store, &arguments.run)?;
    let Some(result) = &arguments.result else {
        return whole_run(global, arguments, &store, run);
    };
    let recorded = gather::gather(&store, run)?;
    let found = || {
        lookup::table(&store, &recorded, result).map_err(|why| {
            let run = recorded.run.id;
            Diagnostic::new(format!("cannot export `{result}`: {why}"))
                .help(format!("`ablate runs {run}` lists what that run made"))
        })
    };
    let bytes = match () {
        () if arguments.textattack => examples_of(&store, &recorded, result, found()?.1)?,
        () if arguments.csv => export::csv(&found()?.0),
        () if arguments.parquet => parquet(&store, &recorded, result, &found()?.0)?,
        () => {
            let (table, step) = found()?;
            let grids = grids(&recorded, result, step, &table, arguments.table.as_deref())?;
            let form = if arguments.latex {
                Grid::latex
            } else {
                Grid::markdown
            };
            let texts: Vec<String> = grids.iter().map(form).collect();
            texts.join("\n").into_bytes()
        }
    };
    match &arguments.output {
        Some(file) => report::write(file, &bytes),
        None => std::io::stdout()
            .write_all(&bytes)
            .map_err(super::unprinted),
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
        .then(|| tables::read(step, 0, &recorded.steps[step], table))
        .flatten();
    let Some(papers) = papers else {
        return match wanted {
            None => Ok(vec![export::plain(result, table)]),
            Some(_) => Err(
                Diagnostic::new(format!("`{result}` holds no tables of a paper"))
                    .help("--table is for tidy results: columns table, row, col and value")
                    .into(),
            ),
        };
    };
    let chosen = papers
        .iter()
        .filter(|paper| wanted.is_none_or(|name| paper.name == name));
    let chosen: Vec<Grid> = chosen.map(export::printed).collect();
    match (chosen.is_empty(), wanted) {
        (true, Some(name)) => {
            let known: Vec<&str> = papers.iter().map(|paper| paper.name.as_str()).collect();
            Err(Diagnostic::new(format!("`{result}` has no table `{name}`"))
                .maybe_help(crate::diagnostic::nearest(name, known.iter().copied()))
                .help(format!("tables: {}", known.join(", ")))
                .into())
        }
        _ => Ok(chosen),
    }
}

/// The object itself if the result is one, so that its digest stays what it is.
fn parquet(
    store: &Store,
    recorded: &Recorded,
    result: &str,
    table: &RecordBatch,
) -> Result<Vec<u8>, Exit> {
    let (target, output) = results::split(result);
    let named = |step: &&gather::Step| step.label == target || step.name() == target;
    let steps: Vec<&gather::Step> = recorded.steps.iter().filter(named).collect();
    if let [step] = steps[..]
        && let Some(found) = output.map_or(step.outputs().first(), |name| step.output(name))
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
    if step.name() == results::split(result).0 && step.label != step.name() {
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
        wrong("holds no examples of an attack on texts")
            .help("--textattack needs a stage of kind attack")
    })?;
    let table = step
        .output("examples")
        .and_then(|output| gather::table(store, output));
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
        eprintln!(
            "ablate: the claims cannot be judged: {}",
            report::first_line(why)
        );
    }
    let recorded = gather::gather(store, run)?;
    let folder = arguments.output.clone().unwrap_or("mlruns".into());
    let written = std::path::absolute(&folder).and_then(|root| {
        let files = mlflow::files(store, &recorded, &claims.unwrap_or_default(), &root);
        mlflow::write(&root, &files).map(|()| files.len())
    });
    let count = written.map_err(|error| {
        Diagnostic::new(format!("cannot write to `{}`: {error}", folder.display()))
    })?;
    let run = recorded.run.id;
    match (global.json, global.quiet) {
        (true, _) => out!(
            "{}",
            json!({ "run": run, "folder": folder, "files": count })
        ),
        (false, true) => {}
        (false, false) => out!("run {run}: {count} files in {}", folder.display()),
    }
    Ok(())
}

/// Writes the file and says so. A file that is there is left alone.
pub fn safetensors(table: &RecordBatch, label: &str, file: &Path, json: bool) -> Result<(), Exit> {
    let bytes = stages::weights::to_safetensors(table).map_err(|failure| {
        Diagnostic::new(format!("`{label}` holds no weights"))
            .help(failure.message)
            .help(
                "--safetensors needs the output `weights` of a train or adversarial-retrain stage",
            )
    })?;
    write_new(file, &bytes).map_err(|error| {
        let name = file.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Diagnostic::new(format!("`{name}` is there already"))
                    .help("pipelines may depend on it: give another name, or remove it first")
            }
            _ => Diagnostic::new(format!("cannot write `{name}`: {error}")),
        }
    })?;
    match json {
        true => out!(
            "{}",
            json!({ "stage": label, "file": file, "bytes": bytes.len() })
        ),
        false => out!("{label}: {} bytes in {}", bytes.len(), file.display()),
    }
    Ok(())
}

/// All bytes under that name, or nothing: they are written beside it and then get the name, which
/// nothing may have by then.
fn write_new(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Readable as any file of the user's is: without this it would be the user's alone.
    let open = std::fs::Permissions::from_mode(0o666);
    let mut temporary = tempfile::Builder::new()
        .permissions(open)
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(file)?;
    Ok(())
}
