//! `ablate plan`: what would run, and why.

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::explain::{self};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan};
use crate::results::find;

/// What `plan` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to plan for [default: all]
    targets: Vec<String>,
}

/// Prints one line for each instance.
pub fn plan(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.targets))?;
    let store = global.existing_store()?;
    let (mut cached, mut will_run, mut waits) = (0, 0, 0);
    let mut lines = String::new();
    for (n, status) in instance_statuses(&plan, &wanted, store.as_ref())
        .iter()
        .enumerate()
    {
        let label = &plan.instances[n].label;
        let Some((status, why)) = in_words(&plan, n, status, store.as_ref())? else {
            continue;
        };
        match status {
            "cached" => cached += 1,
            "waits on" => waits += 1,
            _ => will_run += 1,
        }
        let line = match global.json {
            true => json!({ "stage": label, "status": status, "why": why }).to_string(),
            false if status == "cached" => format!("cached    {label}"),
            false => format!("{status:<9} {label}: {why}"),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    // One write: a plan may have a hundred thousand lines.
    out!("{}", lines.trim_end());
    if !global.json {
        out!("ablate: {cached} cached, {will_run} to run, {waits} waiting");
    }
    Ok(())
}

/// An instance's status in words, and why; nothing for one that is not among the targets.
fn in_words(
    plan: &Plan<'_>,
    n: usize,
    status: &InstanceStatus,
    store: Option<&Store>,
) -> Result<Option<(&'static str, String)>, Exit> {
    Ok(Some(match status {
        InstanceStatus::NotTargeted => return Ok(None),
        InstanceStatus::Cached { .. } => ("cached", String::new()),
        InstanceStatus::WillRun(key) | InstanceStatus::Unsound { key, .. } => {
            let reason = explain::reason(plan, n, key, store)?;
            ("will run", explain::line(&reason))
        }
        InstanceStatus::WaitsOn(other) => ("waits on", plan.instances[*other].label.clone()),
        InstanceStatus::Broken(failure) => ("will fail", failure.message.clone()),
    }))
}
