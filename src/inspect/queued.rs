//! What an unfinished run has handed to a queue: which keys wait, run (where, since when), or are done and not taken
//! yet. Reads the attempts' folders alone; does not ask the queue.

use std::collections::HashMap;

use store::{Digest, Store};

use crate::engine::handover;

/// Where an attempt is.
#[derive(Clone, Debug, PartialEq)]
pub enum QueuedState {
    /// Not started; what the queue calls it, if that is known.
    Waiting(Option<String>),
    /// At work on a machine since a time, in microseconds since 1970.
    Running { node: String, since: i64 },
    /// Its result waits for a driver.
    Done,
}

/// An attempt that somebody may still wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedAttempt {
    /// The stage instance, as its driver calls it.
    pub stage: String,
    /// Where it is.
    pub state: QueuedState,
}

/// The newest attempt of each key that somebody may still wait for.
pub fn queued(store: &Store) -> HashMap<Digest, QueuedAttempt> {
    let mut attempts = handover::attempts(&store.root().join("jobs"));
    attempts.sort_by_key(|(_, attempt, _)| *attempt);
    let states = attempts.into_iter().filter_map(|(key, _, handover)| {
        if handover.is_abandoned() {
            return None;
        }
        let task = handover.task().ok()?;
        let state = match (handover.done(&task.nonce), handover.started()) {
            (Some(_), _) => QueuedState::Done,
            (None, Some(started)) => QueuedState::Running {
                node: started.node,
                since: started.at,
            },
            (None, None) => QueuedState::Waiting(handover.submitted().and_then(|it| it.id)),
        };
        let stage = task.job.label;
        Some((key, QueuedAttempt { stage, state }))
    });
    states.collect()
}
