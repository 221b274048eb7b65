//! `ablate ls`: the stages of the pipeline, or the outputs of some of them.

use clap::Args;
use serde_json::json;
use store::{Output, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan;
use crate::results::find;

/// What `ls` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to list: `stage` or `stage[axis=value]` [default: all]
    stages: Vec<String>,
}

/// Lists every output of the stages, with its rows and digest if it is stored.
pub fn ls(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let listed = find::chosen(&plan, &arguments.stages)?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.stages))?;
    let store = global.existing_store()?;
    let statuses = instance_statuses(&plan, &wanted, store.as_ref());
    let width = widest(&plan, &listed);
    for n in listed {
        let (instance, kind) = (&plan.instances[n], plan.decl(n).kind.describe().kind);
        let made = made(store.as_ref(), &statuses[n])?;
        for (at, name) in instance.outputs.iter().enumerate() {
            let output = made.get(at);
            let label = plan.source_label(plan::Source {
                instance: n,
                output: at,
            });
            match output {
                _ if global.json => out!(
                    "{}",
                    json!({
                        "result": label, "stage": instance.label, "kind": kind, "output": name,
                        "rows": output.map(|o| o.rows), "bytes": output.map(|o| o.bytes),
                        "digest": output.map(|o| o.digest),
                    })
                ),
                Some(output) => out!(
                    "{label:<width$} {kind:<20} {:>9} rows  {}",
                    output.rows,
                    output.digest.short()
                ),
                None => out!("{label:<width$} {kind:<20} {}", state(&statuses[n])),
            }
        }
    }
    Ok(())
}

/// How wide the first column is: as the longest name, which may have many axes.
fn widest(plan: &plan::Plan<'_>, listed: &[usize]) -> usize {
    let labels = listed.iter().flat_map(|n| {
        let outputs = 0..plan.instances[*n].outputs.len();
        outputs.map(|output| {
            let source = plan::Source {
                instance: *n,
                output,
            };
            plan.source_label(source).chars().count()
        })
    });
    labels.max().unwrap_or_default().max(32)
}

/// What an instance has in the store.
fn made(store: Option<&Store>, status: &InstanceStatus) -> Result<Vec<Output>, Exit> {
    let (Some(store), InstanceStatus::Cached { execution, .. }) = (store, status) else {
        return Ok(Vec::new());
    };
    let execution = store.execution(*execution)?;
    Ok(execution.map(|it| it.outputs).unwrap_or_default())
}

/// Why there is no result.
fn state(status: &InstanceStatus) -> &'static str {
    match status {
        InstanceStatus::Unsound { fault, .. } => fault.word(),
        _ => "has not been run",
    }
}
