//! How things stand, without running anything: which instances are cached, which would run,
//! which wait. `plan`, `explain`, `show` and `graph` print this.

use arrow::record_batch::RecordBatch;
use stages::Failure;
use store::{Digest, StageKey, Store};

use crate::plan::{Plan, Source};
use crate::resolve::{Unreadable, Unresolved, resolve};
use crate::schedule::cached;

/// How one instance stands.
pub enum Standing {
    /// Its result is in the store.
    Cached {
        /// The digest of its key.
        key: Digest,
        /// Its outputs in order.
        outputs: Vec<Digest>,
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

/// Surveys all wanted instances. Without a store nothing is cached.
pub fn survey(plan: &Plan<'_>, wanted: &[bool], store: Option<&Store>) -> Vec<Standing> {
    let _snapshot = store.map(Store::snapshot);
    let mut standings: Vec<Standing> = Vec::with_capacity(plan.instances.len());
    for (n, instance) in plan.instances.iter().enumerate() {
        if !wanted[n] {
            standings.push(Standing::Unwanted);
            continue;
        }
        let made = |source: Source| match &standings[source.instance] {
            Standing::Cached { outputs, .. } => Some(outputs[source.output]),
            _ => None,
        };
        if let Some(source) = instance.sources().find(|source| made(*source).is_none()) {
            standings.push(Standing::WaitsOn(source.instance));
            continue;
        }
        let digest = |source| made(source).expect("all sources are made");
        let read = |source| read(store, source, &digest(source));
        let standing = match resolve(plan, n, digest, read) {
            Ok(resolved) => match store.and_then(|store| cached(store, &resolved)) {
                Some(found) => Standing::Cached {
                    key: resolved.digest,
                    outputs: found.outputs.iter().map(|output| output.digest).collect(),
                },
                None => Standing::WillRun(Box::new(resolved.key)),
            },
            Err(Unresolved::Metric(failure)) => Standing::Broken(failure),
            // Its producer will be made again, and this instance waits for that.
            Err(Unresolved::Unreadable(lost)) => Standing::WaitsOn(lost.source.instance),
        };
        standings.push(standing);
    }
    standings
}

fn read(store: Option<&Store>, source: Source, digest: &Digest) -> Result<RecordBatch, Unreadable> {
    let store = store.expect("what is cached is in a store");
    store
        .read(digest)
        .map_err(|error| Unreadable { source, error })
}
