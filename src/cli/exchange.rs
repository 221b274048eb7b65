//! `ablate export --ro-crate` and `ablate export --openlineage`: a run for other tools.

use std::path::Path;

use serde_json::json;

use super::{Exit, Global, out, which};
use crate::diagnostic::Diagnostic;
use crate::exchange::{Record, open_lineage, ro_crate};

/// Writes a crate of a run.
pub fn write_crate(global: &Global, run: &str, path: &Path) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let record = Record::of(&store, which::run(global, &store, run)?)?;
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
        return Err(Diagnostic::new(format!(
            "the stored bytes of `{stage}` are not those that were made: {why}"
        ))
        .help("`ablate run` makes them again")
        .into());
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
                Diagnostic::new(format!("`{name}` is there already"))
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
            "run {}: {} executions and {tables} tables in {}{}",
            record.run.id,
            record.executions.len(),
            path.display(),
            match gone {
                0 => String::new(),
                n => format!("; {n} tables are no longer in the store"),
            }
        ),
    }
    Ok(())
}

/// Stands in for the pipeline file of a run that is older than the habit of recording it.
fn as_it_is_now(global: &Global) -> Result<Vec<u8>, Exit> {
    let file = &global.file;
    std::fs::read(file).map_err(|error| {
        Diagnostic::new(format!("cannot read `{}`: {error}", file.display()))
            .help("this run's own pipeline file was not recorded: -f FILE names one")
            .into()
    })
}

/// Prints the events of a run.
pub fn print_events(global: &Global, run: &str) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let record = Record::of(&store, which::run(global, &store, run)?)?;
    for event in open_lineage::events(&record) {
        out!("{event}");
    }
    Ok(())
}
