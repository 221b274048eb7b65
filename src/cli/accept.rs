//! `ablate accept`: a person vouches that a change of code is harmless, and the old result stays in use.

use std::process::Command;

use clap::Args;
use serde_json::json;
use store::{StageKey, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection;
use crate::diagnostic::Diagnostic;
use crate::inspect::explain::{self, Reason};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan};
use crate::results::find;
use crate::results::recall;

/// What `accept` takes.
#[derive(Args)]
pub struct Arguments {
    /// The stage: `stage` or `stage[axis=value]`
    stage: String,
    /// Why the change cannot change the result
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Who accepts it [default: the user's name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

/// Keeps the results of a stage in use although its code has changed.
pub fn accept(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let reason = arguments.reason.trim();
    if reason.is_empty() {
        let problem = Diagnostic::new("accepting a result needs a reason");
        return Err(problem
            .help("explain why the result cannot change: every audit shows it")
            .into());
    }
    let by = arguments.by.as_deref().unwrap_or_default();
    if let Some(c) = reason.chars().chain(by.chars()).find(|c| c.is_control()) {
        return Err(
            Diagnostic::new(format!("a reason or a name contains {c:?}"))
                .help("write it in one line: every audit shows it")
                .into(),
        );
    }
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(
        &pipeline,
        find::wanted(&plan, std::slice::from_ref(&arguments.stage)),
    )?;
    let store = global.needed_store()?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let who = match &arguments.by {
        Some(name) => name.clone(),
        None => user(),
    };
    for n in find::find_instances(&plan, &arguments.stage)? {
        let label = &plan.instances[n].label;
        let key = match &statuses[n] {
            InstanceStatus::WillRun(key) => key,
            InstanceStatus::Unsound { .. } => {
                return Err(run_selection::unshown(global, &plan, &statuses, n));
            }
            InstanceStatus::WaitsOn(other) => {
                let other = &plan.instances[*other].label;
                return Err(Diagnostic::new(format!("`{label}` waits on `{other}`"))
                    .help(format!("accept or run `{other}` first"))
                    .into());
            }
            InstanceStatus::Broken(failure) => {
                return Err(Diagnostic::new(format!("`{label}`: {}", failure.message)).into());
            }
            InstanceStatus::Cached { .. } | InstanceStatus::NotTargeted => {
                if !global.quiet {
                    out!("{label}: its result is already in use");
                }
                continue;
            }
        };
        let old = store.same_but_code(label, key)?;
        let whole = match &old {
            Some((id, _)) => store.execution(*id)?,
            None => None,
        };
        let whole = match whole {
            Some(it) if recall::of_execution(&store, &it)?.is_none() => Some(it),
            _ => None,
        };
        let (Some((execution, code)), Some(_)) = (old, whole) else {
            return Err(not_acceptable(global, &plan, n, key, &store)?);
        };
        store.accept(label, execution, code, key, &who, reason)?;
        match global.json {
            true => out!(
                "{}",
                json!({
                    "stage": label, "execution": execution, "old_code": code,
                    "new_code": key.code, "who": who, "reason": reason,
                })
            ),
            false => out!(
                "{label}: code {} is accepted for {} by {who}",
                code.short(),
                key.code.short()
            ),
        }
    }
    Ok(())
}

/// Why no stored result can stand in: it differs in more than its code, or there is none.
fn not_acceptable(
    global: &Global,
    plan: &Plan<'_>,
    n: usize,
    key: &StageKey,
    store: &Store,
) -> Result<Exit, store::Error> {
    let label = &plan.instances[n].label;
    let why = match explain::reason(plan, n, key, Some(store))? {
        Reason::Differs(list) => {
            let other = list.iter().filter(|d| !d.field.starts_with("code"));
            other
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        }
        other => explain::line(&other),
    };
    let problem = Diagnostic::new(format!(
        "`{label}` has no stored result that differs in its code alone"
    ));
    Ok(problem
        .maybe_help((!why.is_empty()).then_some(why))
        .help(global.command(&format!("run '{label}'")))
        .into())
}

/// The name of whoever runs this, as the system has it.
fn user() -> String {
    let asked = Command::new("id").arg("-un").output();
    let name = asked.ok().filter(|answer| answer.status.success());
    let name = name.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "somebody".to_owned())
}
