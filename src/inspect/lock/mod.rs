//! `results.lock`: what every stage instance of a pipeline gave, as a small text that is committed with the paper.
//! `file` writes and reads it, `compare` holds results against it. Runs nothing.

pub mod compare;
mod file;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::{Digest, Environment, Store};

use crate::inspect::status::InstanceStatus;
use crate::plan::Plan;

/// What the stages of a pipeline gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The version of this text.
    format: u32,
    /// The pipeline's name.
    pub pipeline: String,
    /// The profile that was applied.
    pub profile: Option<String>,
    /// Where most of them were executed: instruction sets, and crates that compute.
    pub machine: String,
    /// Each instance.
    pub stages: BTreeMap<String, LockedStage>,
}

/// What one stage instance gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedStage {
    /// The contents of each output.
    pub outputs: BTreeMap<String, Digest>,
    /// What its kind promises of them when it is executed again.
    pub promise: String,
    /// The key that it had. Another key is not another result: code may change and outputs stay.
    pub key: Digest,
    /// Where it was executed, if not where most were.
    pub machine: Option<String>,
}

/// A stage instance without a usable result cannot be locked.
#[derive(Debug)]
pub struct NotRun<'a> {
    /// The first of them.
    pub first: &'a str,
    /// How many there are.
    pub count: usize,
}

impl Lock {
    /// The version that this program writes.
    const FORMAT: u32 = 1;

    /// What a store has of all instances of a plan.
    pub fn of<'a>(
        plan: &'a Plan<'_>,
        profile: Option<String>,
        statuses: &[InstanceStatus],
        store: &Store,
    ) -> Result<Result<Lock, NotRun<'a>>, store::Error> {
        let (mut stages, mut missing) = (BTreeMap::new(), Vec::new());
        for (n, status) in statuses.iter().enumerate() {
            let label = &plan.instances[n].label;
            match status {
                InstanceStatus::Cached { key, execution, .. } => {
                    let locked = locked(plan, n, *key, *execution, store)?;
                    stages.insert(label.clone(), locked);
                }
                _ => missing.push(label.as_str()),
            }
        }
        if let Some(first) = missing.first() {
            let count = missing.len();
            return Ok(Err(NotRun { first, count }));
        }
        let machine = most_frequent(&stages);
        for stage in stages.values_mut() {
            stage.machine.take_if(|own| *own == machine);
        }
        Ok(Ok(Lock {
            format: Lock::FORMAT,
            pipeline: plan.pipeline.name.clone(),
            profile,
            machine,
            stages,
        }))
    }

    /// Where an instance was executed.
    fn machine_of<'a>(&'a self, stage: &'a LockedStage) -> &'a str {
        stage.machine.as_deref().unwrap_or(&self.machine)
    }
}

fn locked(
    plan: &Plan<'_>,
    n: usize,
    key: Digest,
    execution: i64,
    store: &Store,
) -> Result<LockedStage, store::Error> {
    let execution = store.execution(execution)?;
    let execution = execution.expect("what is cached was executed");
    let outputs = execution.outputs.into_iter();
    let promise = plan.decl(n).kind.determinism(&plan.instances[n].params);
    Ok(LockedStage {
        outputs: outputs.map(|it| (it.name, it.digest)).collect(),
        promise: promise.name().to_owned(),
        key,
        machine: Some(machine_class(&execution.environment)),
    })
}

/// The class of most stages; of equally frequent ones the first in alphabetical order.
fn most_frequent(stages: &BTreeMap<String, LockedStage>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for machine in stages.values().filter_map(|it| it.machine.as_deref()) {
        *counts.entry(machine).or_default() += 1;
    }
    let most = counts.iter().rev().max_by_key(|(_, count)| **count);
    most.map_or_else(String::new, |(machine, _)| (*machine).to_owned())
}

/// What rounding may depend on: `avx avx2 fma; arrow 60.1.0, gemm 0.19.0`.
pub fn machine_class(environment: &Environment) -> String {
    let instructions = match environment.cpu_features.is_empty() {
        true => environment.cpu_model.clone(),
        false => environment.cpu_features.join(" "),
    };
    let crates = environment.crates.iter();
    let crates: Vec<String> = crates.map(|(name, at)| format!("{name} {at}")).collect();
    format!("{instructions}; {}", crates.join(", "))
}
