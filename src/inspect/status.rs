//! How things stand, without running anything: which instances are cached, which would run,
//! which wait. `plan` and `explain` print this; whoever shows results starts from it.

use arrow::record_batch::RecordBatch;
use stages::Failure;
use store::{Digest, Found, StageKey, Store};

use crate::plan::{Plan, Source};
use crate::resolve::{Resolved, Unreadable, Unresolved, resolve};
use crate::results::recall::{Fault, Recalled, recall};

/// How one instance stands.
pub enum Standing {
    /// Its result is in the store.
    Cached {
        /// The digest of its key.
        key: Digest,
        /// The execution that made it.
        execution: i64,
        /// Its outputs in order.
        outputs: Vec<Digest>,
    },
    /// It was executed, and what the store has of it is not what was made: it would run.
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
    /// An input is not made yet, so not even its key is known.
    WaitsOn(usize),
    /// `select` cannot use its metric.
    Broken(Failure),
    /// Nobody asked for it.
    Unwanted,
}

impl Standing {
    /// What its outputs are, in order. Their objects may be damaged or missing, but what was made is
    /// known: a record that was altered says nothing.
    pub fn outputs(&self) -> Option<&[Digest]> {
        match self {
            Standing::Unsound {
                fault: Fault::Altered(_),
                ..
            } => None,
            other => other.recorded().map(|(_, outputs)| outputs),
        }
    }

    /// What its record says, altered or not: the execution, and the outputs in order.
    pub fn recorded(&self) -> Option<(i64, &[Digest])> {
        match self {
            Standing::Cached {
                execution, outputs, ..
            }
            | Standing::Unsound {
                execution, outputs, ..
            } => Some((*execution, outputs)),
            _ => None,
        }
    }

    /// The digest of its key, if that is known.
    pub fn key(&self) -> Option<Digest> {
        match self {
            Standing::Cached { key, .. } => Some(*key),
            Standing::Unsound { key, .. } | Standing::WillRun(key) => Some(key.digest()),
            _ => None,
        }
    }
}

/// Surveys all wanted instances. Without a store nothing is cached.
pub fn survey(plan: &Plan<'_>, wanted: &[bool], store: Option<&Store>) -> Vec<Standing> {
    survey_by(plan, wanted, store, Standing::outputs)
}

/// The same for those who look into altered records, and say so: they are followed as they are.
pub fn survey_as_recorded(plan: &Plan<'_>, wanted: &[bool], store: &Store) -> Vec<Standing> {
    survey_by(plan, wanted, Some(store), |standing| {
        standing.recorded().map(|(_, outputs)| outputs)
    })
}

/// What an instance without a result waits for in the end: the first before it that has none of its
/// own accord, or itself.
pub fn cause(standings: &[Standing], n: usize) -> usize {
    let mut at = n;
    while let Standing::WaitsOn(other) = &standings[at] {
        at = *other;
    }
    at
}

fn survey_by(
    plan: &Plan<'_>,
    wanted: &[bool],
    store: Option<&Store>,
    outputs: impl Fn(&Standing) -> Option<&[Digest]>,
) -> Vec<Standing> {
    let _snapshot = store.map(Store::snapshot);
    let mut standings: Vec<Standing> = Vec::with_capacity(plan.instances.len());
    for (n, instance) in plan.instances.iter().enumerate() {
        if !wanted[n] {
            standings.push(Standing::Unwanted);
            continue;
        }
        // What lost its bytes was still made: whatever reads it has a key, and perhaps a result.
        let made = |source: Source| {
            let outputs = outputs(&standings[source.instance])?;
            outputs.get(source.output).copied()
        };
        if let Some(source) = instance.sources().find(|source| made(*source).is_none()) {
            standings.push(Standing::WaitsOn(source.instance));
            continue;
        }
        let digest = |source| made(source).expect("all sources are made");
        let read = |source| read(store, source, &digest(source));
        let standing = match resolve(plan, n, digest, read) {
            Ok(resolved) => standing(store, resolved),
            Err(Unresolved::Metric(failure)) => Standing::Broken(failure),
            // Its producer will be made again, and this instance waits for that.
            Err(Unresolved::Unreadable(lost)) => Standing::WaitsOn(lost.source.instance),
        };
        standings.push(standing);
    }
    standings
}

fn standing(store: Option<&Store>, resolved: Resolved) -> Standing {
    let digests = |found: &Found| found.outputs.iter().map(|output| output.digest).collect();
    match store.map_or(Recalled::Never, |store| recall(store, &resolved.digest)) {
        Recalled::Never => Standing::WillRun(Box::new(resolved.key)),
        Recalled::Sound(found) => Standing::Cached {
            key: resolved.digest,
            execution: found.execution,
            outputs: digests(&found),
        },
        Recalled::Unsound(found, fault) => Standing::Unsound {
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
