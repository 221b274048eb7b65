//! `ablate plan`: what would run, and why.

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::explain::{self};
use crate::inspect::status::{Standing, survey};
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
    for (n, standing) in survey(&plan, &wanted, store.as_ref()).iter().enumerate() {
        let label = &plan.instances[n].label;
        let Some((status, why)) = status(&plan, n, standing, store.as_ref())? else {
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
        out!("ablate: {cached} cached, {will_run} to run, {waits} waiting on them");
    }
    Ok(())
}

/// How an instance stands, in a word, and why; nothing for one that nobody asked for.
fn status(
    plan: &Plan<'_>,
    n: usize,
    standing: &Standing,
    store: Option<&Store>,
) -> Result<Option<(&'static str, String)>, Exit> {
    Ok(Some(match standing {
        Standing::Unwanted => return Ok(None),
        Standing::Cached { .. } => ("cached", String::new()),
        Standing::WillRun(key) | Standing::Unsound { key, .. } => {
            let reason = explain::reason(plan, n, key, store)?;
            ("will run", explain::line(&reason))
        }
        Standing::WaitsOn(other) => ("waits on", plan.instances[*other].label.clone()),
        Standing::Broken(failure) => ("will fail", failure.message.clone()),
    }))
}
