//! `ablate diff`: what two runs did differently.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use super::run_selection;
use crate::amounts::plural;
use crate::inspect::compare;

/// What `diff` takes.
#[derive(Args)]
pub struct Arguments {
    /// The older run: number, tag, `last` or `prev` (of this pipeline)
    #[arg(default_value = "prev")]
    old: String,
    /// The newer run
    #[arg(default_value = "last")]
    new: String,
}

/// What two runs did differently: parameters, artifacts, rows of results.
pub fn diff(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let run = |name: &str| run_selection::named(global, &store, name);
    let (old, new) = (run(&arguments.old)?, run(&arguments.new)?);
    let compare::Runs {
        same,
        differ,
        altered,
    } = compare::runs(&store, old.id, new.id)?;
    for instance in differ {
        let stage = &instance.stage;
        if let Some(note) = &instance.note {
            match global.json {
                true => out!("{}", json!({ "stage": stage, "note": note })),
                false => out!("{stage}: {note}"),
            }
            continue;
        }
        let (fields, tables) = (&instance.fields, &instance.outputs);
        if global.json {
            out!(
                "{}",
                json!({ "stage": stage, "fields": fields, "outputs": tables })
            );
            continue;
        }
        out!("{stage}");
        for field in fields {
            out!("  {field}");
        }
        for table in tables {
            out!("  {table}");
        }
        if fields.is_empty() && tables.is_empty() {
            out!("  executed again, same bytes");
        }
    }
    if !global.json {
        out!(
            "ablate: {} the same in runs {} and {}",
            plural(same, "stage"),
            old.id,
            new.id
        );
    }
    match altered {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}
