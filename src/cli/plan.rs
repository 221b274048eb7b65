//! `ablate plan`: what would run, and why.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::explain::{self};
use crate::inspect::status::{Standing, survey};
use crate::plan;
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
        let (status, why) = match standing {
            Standing::Unwanted => continue,
            Standing::Cached { .. } => {
                cached += 1;
                ("cached", String::new())
            }
            Standing::WillRun(key) | Standing::Unsound { key, .. } => {
                will_run += 1;
                (
                    "will run",
                    explain::line(&explain::reason(&plan, n, key, store.as_ref())?),
                )
            }
            Standing::WaitsOn(other) => {
                waits += 1;
                ("waits on", plan.instances[*other].label.clone())
            }
            Standing::Broken(failure) => {
                will_run += 1;
                ("will fail", failure.message.clone())
            }
        };
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
