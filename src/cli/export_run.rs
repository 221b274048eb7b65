//! `ablate export --ro-crate` and `ablate export --openlineage`: a run for other tools.

use std::path::Path;

use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use super::run_selection::{self, RunOption};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::inspect::stored::Unusable;
use crate::publish::exchange::{Record, open_lineage, ro_crate};
use crate::results::recall::Fault;

/// Writes a crate of a run.
pub fn write_crate(global: &Global, option: &RunOption, path: &Path) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let record = record(global, &store, option)?;
    let recorded = match &record.run.source {
        Some(digest) => store.text(digest)?,
        None => None,
    };
    let pipeline = match recorded {
        Some(text) => ro_crate::Pipeline {
            text: text.into_bytes(),
            recorded: true,
        },
        None => ro_crate::Pipeline {
            text: as_it_is_now(global)?,
            recorded: false,
        },
    };
    let described = ro_crate::describe(&record, &store, pipeline);
    if let Some((stage, why)) = described.damaged.first() {
        let what = format!("the stored result of `{stage}` is damaged: {why}");
        return Err(Exit::Failed(
            Diagnostic::new(what).help(format!("`{}` recomputes it", global.command("run"))),
        ));
    }
    let zip = path.extension().is_some_and(|ending| ending == "zip");
    let written = match zip {
        true => described.write_zip(path, &store),
        false => described.write_folder(path, &store),
    };
    written.map_err(|error| {
        let name = path.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Diagnostic::new(format!("`{name}` already exists"))
                    .help("give another name, or remove it first")
            }
            _ => Diagnostic::new(format!("cannot write `{name}`: {error}")),
        }
    })?;
    let (tables, gone) = (described.objects.len(), described.gone.len());
    match global.json {
        true => out!(
            "{}",
            json!({ "run": record.run.id, "path": path, "tables": tables, "gone": gone,
                    "executions": record.executions.len() })
        ),
        false => out!(
            "run {}: {} and {} in {}{}",
            record.run.id,
            plural(record.executions.len(), "execution"),
            plural(tables, "table"),
            path.display(),
            match gone {
                0 => String::new(),
                1 => "; 1 table is no longer in the store".to_owned(),
                n => format!("; {n} tables are no longer in the store"),
            }
        ),
    }
    Ok(())
}

/// The run, unless its record was altered: other tools could not detect that.
fn record(global: &Global, store: &Store, option: &RunOption) -> Result<Record, Exit> {
    let record = Record::of(store, run_selection::shown(global, store, option)?)?;
    let altered = store.unsealed(record.executions.keys().copied())?;
    match altered.into_iter().next() {
        None => Ok(record),
        Some((id, why)) => {
            let (label, fault) = (record.executions[&id].instance.clone(), Fault::Altered(why));
            Err(run_selection::unusable_exit(
                global,
                &Unusable { label, fault },
            ))
        }
    }
}

/// Stands in for the pipeline file of a run from before it was recorded.
fn as_it_is_now(global: &Global) -> Result<Vec<u8>, Exit> {
    let file = &global.file;
    std::fs::read(file).map_err(|error| {
        Diagnostic::new(format!("cannot read `{}`: {error}", file.display()))
            .help("this run's own pipeline file was not recorded: -f FILE names one")
            .into()
    })
}

/// Prints the events of a run.
pub fn print_events(global: &Global, option: &RunOption) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let record = record(global, &store, option)?;
    for event in open_lineage::events(&record) {
        out!("{}", crate::visible::in_json(&event.to_string()));
    }
    Ok(())
}
