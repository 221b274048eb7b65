//! The status of every instance, without running anything: which are cached, which would run,
//! which wait. `plan` and `explain` print this; commands that show results start from it.

use arrow::record_batch::RecordBatch;
use stages::Failure;
use store::{Digest, Found, StageKey, Store};

use crate::plan::{Plan, Source};
use crate::resolve::{Resolved, Unreadable, Unresolved, resolve};
use crate::results::recall::{Fault, Recalled, recall};

/// The status of one instance.
pub enum InstanceStatus {
    /// Its result is in the store.
    Cached {
        /// The digest of its key.
        key: Digest,
        /// The execution that made it.
        execution: i64,
        /// Its outputs in order.
        outputs: Vec<Digest>,
    },
    /// It was executed, but its stored result is damaged, missing or altered: it would run.
    Unsound {
        /// Its key.
        key: Box<StageKey>,
        /// The execution that made it, as the record says.
        execution: i64,
        /// What its outputs were, in order, as the record says.
        outputs: Vec<Digest>,
        /// What is wrong.
        fault: Fault,
    },
    /// Its inputs are there, its result is not.
    WillRun(Box<StageKey>),
    /// An input has not been computed, so its key is not known.
    WaitsOn(usize),
    /// The metric of `select` cannot be used.
    Broken(Failure),
    /// It is not among the targets.
    NotTargeted,
}

impl InstanceStatus {
    /// The digests of its outputs, in order. Their objects may be damaged or missing; a record that was altered
    /// is not believed.
    pub fn outputs(&self) -> Option<&[Digest]> {
        match self {
            InstanceStatus::Unsound {
                fault: Fault::Altered(_),
                ..
            } => None,
            other => other.recorded().map(|(_, outputs)| outputs),
        }
    }

    /// The execution and the outputs in order, as recorded, even if the record was altered.
    pub fn recorded(&self) -> Option<(i64, &[Digest])> {
        match self {
            InstanceStatus::Cached {
                execution, outputs, ..
            }
            | InstanceStatus::Unsound {
                execution, outputs, ..
            } => Some((*execution, outputs)),
            _ => None,
        }
    }

    /// The digest of its key, if that is known.
    pub fn key(&self) -> Option<Digest> {
        match self {
            InstanceStatus::Cached { key, .. } => Some(*key),
            InstanceStatus::Unsound { key, .. } | InstanceStatus::WillRun(key) => {
                Some(key.digest())
            }
            _ => None,
        }
    }
}

/// The status of every instance. Without a store nothing is cached.
pub fn instance_statuses(
    plan: &Plan<'_>,
    wanted: &[bool],
    store: Option<&Store>,
) -> Vec<InstanceStatus> {
    statuses_with(plan, wanted, store, InstanceStatus::outputs)
}

/// The same, but altered records are followed as they are: for callers that report the alteration.
pub fn statuses_as_recorded(
    plan: &Plan<'_>,
    wanted: &[bool],
    store: &Store,
) -> Vec<InstanceStatus> {
    statuses_with(plan, wanted, Some(store), |status| {
        status.recorded().map(|(_, outputs)| outputs)
    })
}

/// The instance at the start of the chain that an instance without a result waits on; or itself.
pub fn root_cause(statuses: &[InstanceStatus], n: usize) -> usize {
    let mut at = n;
    while let InstanceStatus::WaitsOn(other) = &statuses[at] {
        at = *other;
    }
    at
}

fn statuses_with(
    plan: &Plan<'_>,
    wanted: &[bool],
    store: Option<&Store>,
    outputs: impl Fn(&InstanceStatus) -> Option<&[Digest]>,
) -> Vec<InstanceStatus> {
    let _snapshot = store.map(Store::snapshot);
    let mut statuses: Vec<InstanceStatus> = Vec::with_capacity(plan.instances.len());
    for (n, instance) in plan.instances.iter().enumerate() {
        if !wanted[n] {
            statuses.push(InstanceStatus::NotTargeted);
            continue;
        }
        // A result whose bytes were lost still has a digest: its readers have keys, and perhaps results.
        let made = |source: Source| {
            let outputs = outputs(&statuses[source.instance])?;
            outputs.get(source.output).copied()
        };
        if let Some(source) = instance.sources().find(|source| made(*source).is_none()) {
            statuses.push(InstanceStatus::WaitsOn(source.instance));
            continue;
        }
        let digest = |source| made(source).expect("all sources are made");
        let read = |source| read(store, source, &digest(source));
        let status = match resolve(plan, n, digest, read) {
            Ok(resolved) => status(store, resolved),
            Err(Unresolved::Metric(failure)) => InstanceStatus::Broken(failure),
            // Its producer will be made again, and this instance waits for that.
            Err(Unresolved::Unreadable(lost)) => InstanceStatus::WaitsOn(lost.source.instance),
        };
        statuses.push(status);
    }
    statuses
}

/// An instance with what it reads, selections made; none if something of that has not been run.
pub fn resolved(
    plan: &Plan<'_>,
    statuses: &[InstanceStatus],
    store: Option<&Store>,
    n: usize,
) -> Option<Resolved> {
    let made = |source: Source| {
        let outputs = statuses[source.instance].outputs()?;
        outputs.get(source.output).copied()
    };
    let all = plan.instances[n].sources().all(|s| made(s).is_some());
    all.then_some(())?;
    let digest = |source| made(source).expect("all sources are made");
    resolve(plan, n, digest, |source| {
        read(store, source, &digest(source))
    })
    .ok()
}

fn status(store: Option<&Store>, resolved: Resolved) -> InstanceStatus {
    let digests = |found: &Found| found.outputs.iter().map(|output| output.digest).collect();
    match store.map_or(Recalled::Never, |store| recall(store, &resolved.digest)) {
        Recalled::Never => InstanceStatus::WillRun(Box::new(resolved.key)),
        Recalled::Sound(found) => InstanceStatus::Cached {
            key: resolved.digest,
            execution: found.execution,
            outputs: digests(&found),
        },
        Recalled::Unsound(found, fault) => InstanceStatus::Unsound {
            key: Box::new(resolved.key),
            execution: found.execution,
            outputs: digests(&found),
            fault,
        },
    }
}

fn read(store: Option<&Store>, source: Source, digest: &Digest) -> Result<RecordBatch, Unreadable> {
    let store = store.expect("what is cached is in a store");
    store
        .read(digest)
        .map_err(|error| Unreadable { source, error })
}
