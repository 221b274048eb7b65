//! What each instance of a plan has in the store: as things stand now, or as a past run had it.
//! Whoever reads results by the plan starts here, so that none of them can take an altered record
//! or a damaged object for a stage that has not been run.

use std::collections::BTreeMap;

use store::{Digest, Run, Store};

use crate::inspect::status::{InstanceStatus, instance_statuses, root_cause};
use crate::plan::Plan;
use crate::results::recall::{self, Fault};

/// What there is.
pub struct Stored {
    /// The outputs of each instance in order, if it has them.
    pub outputs: Vec<Option<Vec<Digest>>>,
    /// Why an instance that was executed has none.
    pub faults: BTreeMap<usize, Unusable>,
}

impl Stored {
    /// Whether what the store has of an instance is damaged or altered. What is missing may have
    /// been removed by gc.
    pub fn is_wrong(&self, n: usize) -> bool {
        let fault = self.faults.get(&n).map(|unusable| &unusable.fault);
        matches!(fault, Some(Fault::Damaged { .. } | Fault::Altered(_)))
    }
}

/// A result that was made and cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    /// The instance that is at fault: the one that was asked about, or one that it reads.
    pub label: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the stored result of `{}` is {}", self.label, self.fault)
    }
}

/// Why an instance has no result now, if that is not because it has not been run.
pub fn unusable(plan: &Plan<'_>, statuses: &[InstanceStatus], n: usize) -> Option<Unusable> {
    let at = root_cause(statuses, n);
    match &statuses[at] {
        InstanceStatus::Unsound { fault, .. } => Some(Unusable {
            label: plan.instances[at].label.clone(),
            fault: fault.clone(),
        }),
        _ => None,
    }
}

/// As things stand.
pub fn now(plan: &Plan<'_>, wanted: &[bool], store: Option<&Store>) -> Stored {
    let statuses = instance_statuses(plan, wanted, store);
    let mut stored = Stored {
        outputs: Vec::with_capacity(statuses.len()),
        faults: BTreeMap::new(),
    };
    for (n, status) in statuses.iter().enumerate() {
        stored.outputs.push(match status {
            InstanceStatus::Cached { outputs, .. } => Some(outputs.clone()),
            _ => None,
        });
        let unusable = unusable(plan, &statuses, n);
        stored.faults.extend(unusable.map(|why| (n, why)));
    }
    stored
}

/// As a past run had it, under the names of the plan.
pub fn of_run(plan: &Plan<'_>, store: &Store, run: &Run) -> Result<Stored, store::Error> {
    let mut executions = BTreeMap::new();
    for used in store.uses(run.id)? {
        executions.extend(used.execution.map(|id| (used.instance, id)));
    }
    let mut stored = Stored {
        outputs: Vec::with_capacity(plan.instances.len()),
        faults: BTreeMap::new(),
    };
    for (n, instance) in plan.instances.iter().enumerate() {
        let execution = match executions.get(&instance.label) {
            Some(id) => store.execution(*id)?,
            None => None,
        };
        let execution = execution.filter(|it| it.failure.is_none());
        let fault = match &execution {
            Some(execution) => recall::of_execution(store, execution)?,
            None => None,
        };
        stored.outputs.push(match (&fault, execution) {
            (None, Some(execution)) => {
                let named = |name: &String| {
                    let mut outputs = execution.outputs.iter();
                    Some(outputs.find(|output| output.name == *name)?.digest)
                };
                instance.outputs.iter().map(named).collect()
            }
            _ => None,
        });
        if let Some(fault) = fault {
            let label = instance.label.clone();
            stored.faults.insert(n, Unusable { label, fault });
        }
    }
    Ok(stored)
}
