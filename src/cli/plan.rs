//! `ablate plan`: what would run, and why.

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::worlds::all_can_be_taken;
use crate::inspect::explain::{self};
use crate::inspect::queued::{QueuedState, queued};
use crate::inspect::status::{InstanceStatus, instance_statuses, resolved};
use crate::plan::{self, Feed, Plan};
use crate::resolve::{Chosen, Resolved};
use crate::results::find;
use crate::results::recall::Fault;

/// What `plan` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to plan for [default: all]
    targets: Vec<String>,
    /// Also show what each instance reads, and what of it was filled in
    #[arg(long)]
    wiring: bool,
    /// Show what the worlds of [choices] would run instead, and about how long that takes
    #[arg(long, conflicts_with_all = ["targets", "wiring"])]
    multiverse: bool,
}

/// Prints one line for each instance.
pub fn plan(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if arguments.multiverse {
        return super::multiverse::estimate(global);
    }
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    all_can_be_taken(global, &pipeline)?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.targets))?;
    let store = global.existing_store()?;
    let in_queue = store.as_ref().map(queued).unwrap_or_default();
    let (mut cached, mut will_run, mut waits, mut handed_over) = (0, 0, 0, 0);
    let mut lines = String::new();
    let statuses = instance_statuses(&plan, &wanted, store.as_ref());
    let ends = plan::ends(&plan, &wanted);
    for (n, status) in statuses.iter().enumerate() {
        let label = &plan.instances[n].label;
        let Some((status, why)) = in_words(&plan, n, status, ends[n], store.as_ref())? else {
            continue;
        };
        let handed = match &statuses[n] {
            InstanceStatus::WillRun(key) => {
                let attempt = in_queue.get(&key.digest());
                attempt.map(|attempt| handed_over_in_words(&attempt.state))
            }
            _ => None,
        };
        let (status, why) = handed.unwrap_or((status, why));
        match status {
            "cached" => cached += 1,
            "waits on" => waits += 1,
            "queued" | "running" | "done" => handed_over += 1,
            _ => will_run += 1,
        }
        let wiring = match arguments.wiring {
            true => wiring(&plan, n, resolved(&plan, &statuses, store.as_ref(), n)),
            false => Vec::new(),
        };
        let line = match global.json {
            true if arguments.wiring => {
                let reads: Vec<_> = wiring.iter().map(Read::json).collect();
                json!({ "stage": label, "status": status, "why": why, "reads": reads }).to_string()
            }
            true => json!({ "stage": label, "status": status, "why": why }).to_string(),
            false if why.is_empty() => format!("{status:<9} {label}"),
            false => format!("{status:<9} {label}: {why}"),
        };
        lines.push_str(&line);
        lines.push('\n');
        if !global.json {
            wiring.iter().for_each(|read| lines.push_str(&read.line()));
        }
    }
    // One write: a plan may have a hundred thousand lines.
    out!("{}", lines.trim_end());
    if !global.json {
        let handed_over = match handed_over {
            0 => String::new(),
            n => format!(", {n} in the queue"),
        };
        out!("ablate: {cached} cached, {will_run} to run{handed_over}, {waits} waiting");
    }
    Ok(())
}

/// Where a job of an unfinished run is.
fn handed_over_in_words(state: &QueuedState) -> (&'static str, String) {
    match state {
        QueuedState::Waiting(None) => ("queued", "not submitted yet".to_owned()),
        QueuedState::Waiting(Some(id)) => {
            let number = id.split('@').next().unwrap_or_default();
            ("queued", format!("as job {number}"))
        }
        QueuedState::Running { node, since } => {
            let since = jiff::Timestamp::from_microsecond(*since).unwrap_or_default();
            let since = since.strftime("%Y-%m-%d %H:%M:%S UTC");
            ("running", format!("on {node} since {since}"))
        }
        QueuedState::Done => (
            "done",
            "the next run with this executor takes its result".to_owned(),
        ),
    }
}

/// What a port reads.
struct Read {
    port: String,
    from: String,
    filled_in: bool,
}

impl Read {
    fn line(&self) -> String {
        let mark = if self.filled_in { "  (filled in)" } else { "" };
        format!("            {} <- {}{mark}\n", self.port, self.from)
    }

    fn json(&self) -> serde_json::Value {
        json!({ "port": self.port, "from": self.from, "filled_in": self.filled_in })
    }
}

/// What an instance reads: one output, the best of several (which one, if that is known), or several together.
fn wiring(plan: &Plan<'_>, n: usize, resolved: Option<Resolved>) -> Vec<Read> {
    let each = plan.instances[n]
        .wires
        .iter()
        .enumerate()
        .map(|(at, wire)| {
            let sources: Vec<String> = wire.from.sources().map(|s| plan.source_label(s)).collect();
            let best = match resolved.as_ref().map(|resolved| &resolved.feeds[at]) {
                Some(Chosen::One(source)) => Some(plan.source_label(*source)),
                _ => None,
            };
            let from = match (&wire.from, &sources[..]) {
                (_, [one]) => one.clone(),
                (Feed::One(_), [first, ..]) => match best {
                    Some(best) => format!("{best}, the best of {}", sources.len()),
                    None => format!("the best of {}: {first}, …", sources.len()),
                },
                (Feed::Collect { .. }, [first, ..]) => {
                    format!("{} together: {first}, …", sources.len())
                }
                (_, []) => String::new(),
            };
            Read {
                port: wire.port.clone(),
                from,
                filled_in: wire.filled_in,
            }
        });
    each.collect()
}

/// An instance's status in words, and why; nothing for one that is not among the targets.
fn in_words(
    plan: &Plan<'_>,
    n: usize,
    status: &InstanceStatus,
    is_end: bool,
    store: Option<&Store>,
) -> Result<Option<(&'static str, String)>, Exit> {
    Ok(Some(match status {
        InstanceStatus::NotTargeted => return Ok(None),
        InstanceStatus::Cached { .. } => ("cached", String::new()),
        InstanceStatus::Unsound {
            fault: Fault::Left { .. },
            ..
        } if !is_end => ("cached", "in a remote, until something reads it".to_owned()),
        InstanceStatus::WillRun(key) | InstanceStatus::Unsound { key, .. } => {
            let reason = explain::reason(plan, n, key, store)?;
            ("will run", explain::line(&reason))
        }
        InstanceStatus::WaitsOn(other) => ("waits on", plan.instances[*other].label.clone()),
        InstanceStatus::Broken(failure) => ("will fail", failure.message.clone()),
    }))
}
