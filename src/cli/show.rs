//! `ablate show`: prints a result.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::record_batch::RecordBatch;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::Args;
use serde_json::json;
use store::{Digest, Run, Store, schema_text};

use super::exit::Exit;
use super::export::no_result;
use super::fitted_table::{fitted, width};
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection::{self, RunOption};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::inspect::summaries::{self, NamedSummary};
use crate::plan;
use crate::results::columns::short;
use crate::results::degenerate;
use crate::results::find;
use crate::results::recorded;
use crate::results::statistics::Method;
use crate::results::table::{self, TableError};

/// What `show` takes.
#[derive(Args)]
pub struct Arguments {
    /// The result: `stage`, `stage.output` or `stage[axis=value].output`
    result: String,
    #[command(flatten)]
    which: RunOption,
    /// How many rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    rows: usize,
    /// For results: print this table as a paper does, ours beside the paper's
    #[arg(long, value_name = "NAME", conflicts_with_all = ["log", "nearest", "safetensors", "rows"])]
    table: Option<String>,
    /// Print long lists, long texts and all columns whole, whatever the terminal's width
    #[arg(long)]
    full: bool,
    /// Print what its last execution printed instead, also of one that failed
    #[arg(long)]
    log: bool,
    /// For vectors: print the words that are nearest to this one instead
    #[arg(long, value_name = "WORD", conflicts_with = "log")]
    nearest: Option<String>,
    /// For weights: write them to this new file, which `start` of a train stage reads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["log", "nearest"])]
    safetensors: Option<PathBuf>,
}

/// Prints schema, shape, first rows, digest and place of a result.
pub fn show(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    match run_selection::past(global, &store, &arguments.which)? {
        None => show_present(global, arguments, &store),
        Some(run) => show_past(global, arguments, &store, run),
    }
}

/// The result of the current pipeline, profile and settings.
fn show_present(global: &Global, arguments: &Arguments, store: &Store) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let asked = find::find_table(&plan, &arguments.result)?;
    let mut wanted = vec![false; plan.instances.len()];
    asked
        .iter()
        .for_each(|source| wanted[source.instance] = true);
    plan::reach(&plan, &mut wanted);
    let statuses = instance_statuses(&plan, &wanted, Some(store));
    if arguments.log {
        let wanted = asked.iter().map(|source| Logged {
            label: plan.instances[source.instance].label.as_str(),
            key: statuses[source.instance].key(),
        });
        let runs = run_selection::own_runs(global, store, LOOK_BACK)?;
        return show_log(store, &runs, wanted.collect());
    }
    let mut found = Vec::with_capacity(asked.len());
    for source in asked {
        let InstanceStatus::Cached { key, outputs, .. } = &statuses[source.instance] else {
            return Err(run_selection::unshown(
                global,
                &plan,
                &statuses,
                source.instance,
            ));
        };
        found.push((source, *key, outputs[source.output]));
    }
    let parts = found.iter().map(|(source, key, digest)| Part {
        label: plan.source_label(*source),
        key: *key,
        digest: *digest,
    });
    let parts: Vec<Part> = parts.collect();
    let notes = || {
        let outputs: Vec<_> = statuses
            .iter()
            .map(|s| s.outputs().map(<[_]>::to_vec))
            .collect();
        let asked = found.iter().map(|(source, ..)| source.instance);
        degenerate::behind(&plan, store, &outputs, asked)
    };
    let cells = |table: &RecordBatch| {
        let [(source, ..)] = found[..] else {
            return None;
        };
        let outputs = statuses.iter().map(|s| s.outputs().map(<[_]>::to_vec));
        let stored = summaries::stored(outputs.collect());
        summaries::of_results(&plan, store, &stored, source, table)
    };
    print(global, arguments, store, &parts, notes, cells, || {
        let found: Vec<_> = found.iter().map(|(source, _, d)| (*source, *d)).collect();
        table::of_plan(&plan, store, &found).map_err(|trouble| match trouble {
            TableError::Store(error) => Exit::Store(error),
            TableError::Mismatch(failure) => {
                let label = &plan.instances[found[0].0.instance].label;
                let help = format!("show one instance: ablate show '{label}'");
                Diagnostic::new(failure.message).help(help).into()
            }
        })
    })
}

/// The result as a past run had it.
fn show_past(global: &Global, arguments: &Arguments, store: &Store, run: Run) -> Result<(), Exit> {
    let recorded = recorded::gather(store, run)?;
    let none = |no| no_result(global, &recorded, "show", &arguments.result, no);
    if arguments.log {
        for at in recorded.steps_of(&arguments.result)? {
            let step = &recorded.steps[at];
            if let Some(execution) = &step.execution {
                out!("{}: executed in run {}", step.label, execution.run);
                out!("{}", execution.log.trim_end());
            }
        }
        return Ok(());
    }
    let outputs = table::outputs(&recorded, &arguments.result).map_err(none)?;
    let asked: Vec<usize> = outputs.iter().map(|(at, _)| *at).collect();
    let mut parts = Vec::with_capacity(outputs.len());
    for (at, output) in outputs {
        let step = &recorded.steps[at];
        let execution = step.execution.as_ref().expect("it has an output");
        parts.push(Part {
            label: step.source(output),
            key: execution.key_digest,
            digest: output.digest,
        });
    }
    let notes = || degenerate::behind_steps(store, &recorded, asked.iter().copied());
    let cells = |table: &RecordBatch| match asked[..] {
        [step] => summaries::of_recorded(&recorded, step, table),
        _ => None,
    };
    print(global, arguments, store, &parts, notes, cells, || {
        let found = table::of_run(store, &recorded, &arguments.result);
        found.map(|(table, _)| table).map_err(none)
    })
}

/// One instance of what is shown.
struct Part {
    /// `stage[axis=value].output`
    label: String,
    key: Digest,
    digest: Digest,
}

/// Prints instances in the requested format; `together` makes one table of them, `notes` lists what is
/// odd about them.
fn print(
    global: &Global,
    arguments: &Arguments,
    store: &Store,
    parts: &[Part],
    notes: impl FnOnce() -> Vec<String>,
    cells: impl FnOnce(&RecordBatch) -> Option<Vec<NamedSummary>>,
    together: impl FnOnce() -> Result<RecordBatch, Exit>,
) -> Result<(), Exit> {
    if let Some(word) = &arguments.nearest {
        // Vectors of different instances are not comparable, so each answers for itself.
        for part in parts {
            if parts.len() > 1 && !global.json {
                out!("{}", part.label);
            }
            let table = store.read(&part.digest)?;
            super::nearest_words::print(&table, &part.label, word, arguments.rows, global.json)?;
        }
        return Ok(());
    }
    if let Some(file) = &arguments.safetensors {
        let [part] = parts else {
            let (label, count) = (&parts[0].label, parts.len());
            return Err(
                Diagnostic::new(format!("`{}` has {count} instances", arguments.result))
                    .help(format!(
                        "a file holds one: {}",
                        global.command(&format!("show '{label}' --safetensors FILE"))
                    ))
                    .into(),
            );
        };
        let table = store.read(&part.digest)?;
        return super::safetensors::write(&table, &part.label, file, global.json);
    }
    let table = together()?;
    if let Some(name) = &arguments.table {
        let cells = cells(&table).unwrap_or_default();
        return super::paper_table::print(&table, &cells, name, global.json);
    }
    if global.json {
        let mut object = as_json(store, parts, &table, arguments.rows);
        object["notes"] = json!(notes());
        if let Some(cells) = cells(&table) {
            object["cells"] = cells.iter().map(cell_json).collect();
        }
        out!("{object}");
        return Ok(());
    }
    print_table(arguments, store, parts, &table)?;
    if let Some(cells) = cells(&table).filter(|cells| !cells.is_empty()) {
        print_cells(&cells, arguments.rows)?;
    }
    for note in notes() {
        out!("note     {note}");
    }
    Ok(())
}

/// Schema, shape, digests, places and first rows, for people.
fn print_table(
    arguments: &Arguments,
    store: &Store,
    parts: &[Part],
    table: &RecordBatch,
) -> Result<(), Exit> {
    let label = match parts {
        [part] => part.label.clone(),
        _ => format!("{} ({} instances)", arguments.result, parts.len()),
    };
    out!(
        "{label}: {}, {}",
        plural(table.num_rows(), "row"),
        plural(table.num_columns(), "column")
    );
    out!("columns  {}", schema_text(table.schema_ref()));
    for part in parts {
        let path = store.object_path(&part.digest);
        let size = std::fs::metadata(&path).map_or(0, |found| found.len());
        if parts.len() > 1 {
            out!("instance {}", part.label);
        }
        out!("digest   {}", part.digest);
        out!("file     {} ({size} bytes)", path.display());
    }
    for line in super::sparkline::lines(table) {
        out!("{line}");
    }
    let head = table.slice(0, arguments.rows.min(table.num_rows()));
    if arguments.full {
        let options = FormatOptions::default().with_null("null");
        let text = pretty_format_batches_with_options(&[head], &options);
        out!(
            "{}",
            text.map_or_else(|error| error.to_string(), |text| text.to_string())
        );
    } else {
        let (text, left_out) = fitted(&head, width());
        out!("{text}");
        if !left_out.is_empty() {
            out!("not shown: {} (--full shows all)", left_out.join(", "));
        }
    }
    if table.num_rows() > arguments.rows {
        out!("… {} more rows", table.num_rows() - arguments.rows);
    }
    Ok(())
}

/// The numbers of a table, each over its executions.
fn print_cells(cells: &[NamedSummary], most: usize) -> Result<(), Exit> {
    let shown = &cells[..most.min(cells.len())];
    let column = |text: &dyn Fn(&NamedSummary) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(shown.iter().map(text)))
    };
    let number = |number: Option<f64>| number.map(short).unwrap_or_default();
    let between = |one: &NamedSummary| match one.summary.interval {
        Some(at) => format!("[{}, {}]", short(at.low), short(at.high)),
        None => String::new(),
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("table", column(&|one| one.names[0].clone())),
        ("row", column(&|one| one.names[1].clone())),
        ("col", column(&|one| one.names[2].clone())),
        ("mean", column(&|one| short(one.summary.mean))),
        ("95% interval", column(&between)),
        ("sd", column(&|one| number(one.summary.sd))),
        (
            "n",
            column(&|one| one.summary.n.map_or(String::new(), |n| n.to_string())),
        ),
        (
            "executions",
            column(&|one| one.summary.executions.to_string()),
        ),
    ];
    let table = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let methods = cells.iter().filter_map(|one| one.summary.interval);
    let methods: BTreeSet<Method> = methods.map(|interval| interval.method).collect();
    let methods: Vec<&str> = methods.into_iter().map(Method::name).collect();
    let methods = match methods.is_empty() {
        true => String::new(),
        false => format!(", intervals by {}", methods.join(" or ")),
    };
    out!("means over executions{methods}");
    out!("{}", fitted(&table, width()).0);
    if cells.len() > shown.len() {
        out!("… {} more cells", cells.len() - shown.len());
    }
    Ok(())
}

fn cell_json(one: &NamedSummary) -> serde_json::Value {
    let [table, row, col] = &one.names;
    let mut cell = json!(one.summary);
    (cell["table"], cell["row"], cell["col"]) = (json!(table), json!(row), json!(col));
    cell
}

/// An instance whose log is wanted, with its key as things stand, if that is known.
struct Logged<'a> {
    label: &'a str,
    key: Option<Digest>,
}

/// The log of the execution that the last run with each of these stages used: with the settings of
/// now if there is one, else with any, and then it says so.
fn show_log(store: &Store, runs: &[Run], mut open: Vec<Logged<'_>>) -> Result<(), Exit> {
    for exact in [true, false] {
        for run in runs {
            for used in store.uses(run.id)? {
                let wanted = |logged: &Logged<'_>| {
                    logged.label == used.instance && (!exact || logged.key == used.key)
                };
                let Some(at) = open.iter().position(wanted) else {
                    continue;
                };
                let Some(execution) = used.execution.map(|id| store.execution(id)).transpose()?
                else {
                    continue;
                };
                let known = open.remove(at).key.is_some();
                if let Some(execution) = execution {
                    let other = if !exact && known {
                        ", with other settings"
                    } else {
                        ""
                    };
                    out!(
                        "{}: executed in run {}{other}",
                        used.instance,
                        execution.run
                    );
                    out!("{}", execution.log.trim_end());
                }
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }
    let labels: Vec<&str> = open.iter().map(|logged| logged.label).collect();
    let labels = labels.join("`, `");
    Err(Diagnostic::new(format!("`{labels}` was not executed in the last runs")).into())
}

/// How many runs are searched for an execution.
const LOOK_BACK: usize = 100;

fn as_json(store: &Store, parts: &[Part], table: &RecordBatch, rows: usize) -> serde_json::Value {
    let mut head = Vec::new();
    let mut writer = arrow::json::ArrayWriter::new(&mut head);
    let written = writer.write(&table.slice(0, rows.min(table.num_rows())));
    let head = match written.and_then(|()| writer.finish()) {
        Ok(()) => serde_json::from_slice(&head).unwrap_or_default(),
        Err(_) => serde_json::Value::Null,
    };
    let schema = table.schema();
    let columns = schema.fields().iter();
    json!({
        "rows": table.num_rows(),
        "columns": columns
            .map(|field| json!({ "name": field.name(), "type": field.data_type().to_string() }))
            .collect::<Vec<_>>(),
        "artifacts": parts
            .iter()
            .map(|part| json!({
                "stage": part.label, "key": part.key, "digest": part.digest,
                "path": store.object_path(&part.digest),
            }))
            .collect::<Vec<_>>(),
        "head": head,
    })
}
