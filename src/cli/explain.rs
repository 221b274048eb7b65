//! `ablate explain`: why a stage will run, field by field.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::inspect::explain::{self, Reason};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan;
use crate::results::find;
use crate::results::recall::Fault;

/// What `explain` takes.
#[derive(Args)]
pub struct Arguments {
    /// The stage: `stage` or `stage[axis=value]`
    stage: String,
}

/// Prints every field in which the key differs from the nearest stored one.
pub fn explain(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let targets = [arguments.stage.clone()];
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &targets))?;
    let asked = find::find_instances(&plan, &arguments.stage)?;
    let store = global.existing_store()?;
    let statuses = instance_statuses(&plan, &wanted, store.as_ref());
    for n in asked {
        let label = &plan.instances[n].label;
        let (status, text, fields) = match &statuses[n] {
            InstanceStatus::NotTargeted => continue,
            InstanceStatus::Cached { key, .. } => (
                "cached",
                format!("{label} is cached: key {}", key.short()),
                Vec::new(),
            ),
            InstanceStatus::Unsound {
                key,
                fault: fault @ Fault::Left { .. },
                ..
            } => (
                "cached",
                format!("{label}: key {} is {fault}", key.digest().short()),
                Vec::new(),
            ),
            InstanceStatus::WaitsOn(other) => {
                let other = &plan.instances[*other].label;
                let text = format!(
                    "{label} waits on {other}: its key is known once {other} has run\n  \
                     ablate explain '{other}'"
                );
                ("waits", text, Vec::new())
            }
            InstanceStatus::Broken(failure) => {
                ("broken", format!("{label}: {failure}"), Vec::new())
            }
            InstanceStatus::WillRun(key) | InstanceStatus::Unsound { key, .. } => {
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
