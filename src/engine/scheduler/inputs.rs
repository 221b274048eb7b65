//! From an instance whose inputs are made to a job that can run, with the tables that are still in memory.

use arrow::record_batch::RecordBatch;
use store::Digest;

use super::Scheduler;
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::plan::Source;
use crate::resolve::{Chosen, Resolved, Unreadable};

impl Scheduler<'_> {
    pub(super) fn job(&self, n: usize, resolved: &Resolved) -> Job {
        Job::of(self.request.plan, n, resolved, |source| {
            self.made_digest(source)
        })
    }

    /// Those of its inputs that this run has just made.
    pub(super) fn tables_at_hand(&self, resolved: &Resolved) -> TablesAtHand {
        let sources = resolved.feeds.iter().flat_map(Chosen::sources);
        let found = sources.filter_map(|source| {
            let table = self.in_memory(source)?;
            Some((self.made_digest(source), table))
        });
        found.collect()
    }

    /// Which output with this digest a job reads, if it still has it.
    pub(super) fn source_of(&self, resolved: &Resolved, digest: &Digest) -> Option<Source> {
        let mut sources = resolved.feeds.iter().flat_map(Chosen::sources);
        sources.find(|source| {
            let made = self.made[source.instance].as_ref();
            made.is_some_and(|made| made.outputs[source.output] == *digest)
        })
    }

    pub(super) fn made_digest(&self, source: Source) -> Digest {
        let made = self.made[source.instance].as_ref();
        made.expect("readers start when their inputs are made")
            .outputs[source.output]
    }

    pub(super) fn in_memory(&self, source: Source) -> Option<RecordBatch> {
        let made = self.made[source.instance].as_ref()?;
        made.tables.get(source.output).cloned().flatten()
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
