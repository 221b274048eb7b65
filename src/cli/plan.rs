//! `ablate plan` and `ablate explain`: what would run, and why.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::explain::{self, Reason};
use crate::inspect::status::{Standing, survey};
use crate::plan;
use crate::results::find;

/// What `plan` takes.
#[derive(Args)]
pub struct PlanArguments {
    /// Stages to plan for [default: all]
    targets: Vec<String>,
}

/// What `explain` takes.
#[derive(Args)]
pub struct ExplainArguments {
    /// The stage: `stage` or `stage[axis=value]`
    stage: String,
}

/// Prints one line for each instance.
pub fn plan(global: &Global, arguments: &PlanArguments) -> Result<(), Exit> {
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

/// Prints every field in which the key differs from the nearest stored one.
pub fn explain(global: &Global, arguments: &ExplainArguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let targets = [arguments.stage.clone()];
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &targets))?;
    let asked = find::find_instances(&plan, &arguments.stage)?;
    let store = global.existing_store()?;
    let standings = survey(&plan, &wanted, store.as_ref());
    for n in asked {
        let label = &plan.instances[n].label;
        let (status, text, fields) = match &standings[n] {
            Standing::Unwanted => continue,
            Standing::Cached { key, .. } => (
                "cached",
                format!("{label} is cached: key {}", key.short()),
                Vec::new(),
            ),
            Standing::WaitsOn(other) => {
                let other = &plan.instances[*other].label;
                let text = format!(
                    "{label} waits on {other}: its key is known when {other} is made\n  \
                     ablate explain '{other}'"
                );
                ("waits", text, Vec::new())
            }
            Standing::Broken(failure) => ("broken", format!("{label}: {failure}"), Vec::new()),
            Standing::WillRun(key) | Standing::Unsound { key, .. } => {
                match explain::reason(&plan, n, key, store.as_ref())? {
                    Reason::Differs(list) if list.len() > 1 => {
                        let each = list.iter().map(|difference| format!("\n  {difference}"));
                        let text = format!("{label} will run:{}", each.collect::<String>());
                        ("will run", text, list)
                    }
                    reason => {
                        let text = format!("{label} will run: {}", explain::line(&reason));
                        let list = match reason {
                            Reason::Differs(list) => list,
                            _ => Vec::new(),
                        };
                        ("will run", text, list)
                    }
                }
            }
        };
        match global.json {
            true => out!(
                "{}",
                json!({ "stage": label, "status": status, "differences": fields })
            ),
            false => out!("{text}"),
        }
    }
    Ok(())
}
