//! What happens when an object that a stage reads is no longer there as it was made: whoever
//! made it recomputes it, and no result of this run mixes old bytes with new ones.

use stages::Failure;

use super::{REBUILDS, Scheduler, State};
use crate::engine::progress::Event;
use crate::plan::Source;
use crate::resolve::{Chosen, Resolved};

impl Scheduler<'_> {
    /// An object that `n` reads has gone or was damaged: its producer recomputes it.
    pub(super) fn lost(&mut self, n: usize, source: Source, error: &store::Error) {
        let made = self.made[source.instance].as_ref();
        let Some(digest) = made.map(|made| made.outputs[source.output]) else {
            // Another reader has found out before.
            self.wait_again(n);
            return;
        };
        if self.rebuilds[source.instance] == REBUILDS {
            let failure = Failure::new(format!("an input is lost again and again: {error}"))
                .help("check the disk, or use another store with `--store`");
            self.fail_unrun(n, None, &failure);
            return;
        }
        // Of what was left in a remote it is told when it is made again, if it is.
        let left =
            matches!(error, store::Error::Missing { .. }) && self.left.contains(&source.instance);
        if !left {
            let label = self.label(source.instance);
            let why = lost_because(error);
            let what = format!("`{label}` is recomputed: {why}");
            self.request.reporter.event(Event::Note(&what));
        }
        // Others may have made the same bytes: theirs are gone too.
        let makers: Vec<usize> = (0..self.made.len())
            .filter(|n| {
                self.made[*n]
                    .as_ref()
                    .is_some_and(|made| made.outputs.contains(&digest))
            })
            .collect();
        for maker in &makers {
            self.rebuilds[*maker] += 1;
            self.unmake(*maker);
        }
        for maker in makers {
            self.readers_wait_again(maker);
            self.wait_again(maker);
        }
        self.wait_again(n);
    }

    /// What else `n` reads that was left in a remote: found one by one, each would cost another start.
    pub(super) fn lost_beside(&mut self, n: usize, resolved: &Resolved) {
        let sources = resolved.feeds.iter().flat_map(Chosen::sources);
        for source in sources.collect::<Vec<_>>() {
            let made = self.made[source.instance].as_ref();
            let digest = made.map(|made| made.outputs[source.output]);
            let absent = digest.filter(|digest| {
                self.left.contains(&source.instance) && !self.request.store.has(digest)
            });
            if let Some(digest) = absent {
                self.lost(n, source, &store::Error::Missing { digest });
            }
        }
    }

    /// Takes back that an instance is done.
    pub(super) fn unmake(&mut self, n: usize) {
        if let Some(made) = self.made[n].take() {
            self.lost.insert(n, made.outputs);
        }
        self.by_key.retain(|_, maker| *maker != n);
        self.state[n] = State::Waiting;
    }

    /// What reads an instance and has not begun waits for it anew.
    pub(super) fn readers_wait_again(&mut self, n: usize) {
        for at in 0..self.readers[n].len() {
            let reader = self.readers[n][at];
            let state = self.state[reader];
            if matches!(
                state,
                State::Waiting | State::Ready | State::Runnable | State::Elsewhere
            ) {
                self.wait_again(reader);
            }
        }
    }

    /// An instance that was lost has come out different: a program that does not give the same
    /// bytes twice. No result of this run may hold both, so all that was made from the old bytes
    /// is looked at again.
    pub(super) fn came_out_different(&mut self, n: usize) {
        let label = self.label(n);
        let what = format!(
            "`{label}` produced different bytes than before: its readers are checked again"
        );
        self.request.reporter.event(Event::Note(&what));
        let mut affected = Vec::new();
        let mut open = vec![n];
        while let Some(n) = open.pop() {
            for at in 0..self.readers[n].len() {
                let reader = self.readers[n][at];
                if self.state[reader] == State::Done {
                    self.unmake(reader);
                    // It is looked at again in any case, whatever it gives.
                    self.lost.remove(&reader);
                    affected.push(reader);
                    open.push(reader);
                }
            }
        }
        for reader in affected {
            self.readers_wait_again(reader);
            self.wait_again(reader);
        }
    }

    /// Whether an input is no longer what the key was made for.
    pub(super) fn is_stale(&self, resolved: &Resolved) -> bool {
        let now = |source: &Source| {
            self.made[source.instance]
                .as_ref()
                .map(|m| m.outputs[source.output])
        };
        let mut used = resolved.inputs.iter();
        let mut sources = resolved.feeds.iter().flat_map(Chosen::sources);
        sources.any(|source| now(&source) != used.next().map(|input| input.digest))
    }

    /// Counts anew what an instance waits for.
    pub(super) fn wait_again(&mut self, n: usize) {
        self.runnable.remove(&n);
        self.elsewhere.remove(&n);
        let sources = self.request.plan.instances[n].sources();
        self.missing[n] = sources.filter(|s| self.made[s.instance].is_none()).count();
        self.state[n] = State::Waiting;
        if self.missing[n] == 0 {
            self.make_ready(n);
        }
    }
}

fn lost_because(error: &store::Error) -> String {
    match error {
        store::Error::Damaged { moved_to, .. } => {
            format!("its object was damaged, and is now {}", moved_to.display())
        }
        store::Error::Missing { .. } => "its object is missing".to_owned(),
        other => other.to_string(),
    }
}
