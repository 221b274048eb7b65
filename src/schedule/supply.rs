//! From an instance whose inputs are made to a job that can run: which table goes where,
//! from memory if this run has just made it.

use arrow::record_batch::RecordBatch;
use store::Digest;

use super::Scheduler;
use crate::plan::{Plan, Source};
use crate::resolve::{Chosen, Resolved, Unreadable};
use crate::run::{Job, Piece, Supply};

/// The job of an instance. `piece` says where each table is.
pub fn job_of(
    plan: &Plan<'_>,
    n: usize,
    resolved: &Resolved,
    piece: impl Fn(Source) -> Piece,
) -> Job {
    let instance = &plan.instances[n];
    let feeds = instance.wires.iter().zip(&resolved.feeds);
    let supplies = feeds.map(|(wire, chosen)| {
        let supply = match chosen {
            Chosen::One(source) => Supply::One(piece(*source)),
            Chosen::Collect { axes, parts } => Supply::Collect {
                axes: axes.clone(),
                parts: parts
                    .iter()
                    .map(|(values, source)| {
                        (plan.source_label(*source), values.clone(), piece(*source))
                    })
                    .collect(),
            },
        };
        (wire.port.clone(), supply)
    });
    Job {
        kind: plan.decl(n).kind,
        params: instance.params.clone(),
        seed: instance.seed,
        files: instance.files.clone(),
        folder: plan.pipeline.dir.clone(),
        supplies: supplies.collect(),
        outputs: instance.outputs.clone(),
    }
}

impl Scheduler<'_> {
    pub(super) fn job(&self, n: usize, resolved: &Resolved) -> Job {
        job_of(self.request.plan, n, resolved, |source| Piece {
            source,
            digest: self.made_digest(source),
            table: self.in_memory(source),
        })
    }

    pub(super) fn made_digest(&self, source: Source) -> Digest {
        let made = self.made[source.instance].as_ref();
        made.expect("readers start when their inputs are made")
            .outputs[source.output]
    }

    pub(super) fn in_memory(&self, source: Source) -> Option<RecordBatch> {
        let made = self.made[source.instance].as_ref()?;
        made.tables.get(source.output).cloned()
    }

    pub(super) fn read(&self, source: Source) -> Result<RecordBatch, Unreadable> {
        match self.in_memory(source) {
            Some(table) => Ok(table),
            None => {
                let digest = self.made_digest(source);
                let read = self.request.store.read(&digest);
                read.map_err(|error| Unreadable { source, error })
            }
        }
    }
}
