//! Items in groups that share batches and nothing else, in parallel. Finished groups are saved now and then, and when
//! the user stops the stage: the next execution of the same key attacks only the rest.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::Array2;
use nn::batch::Sequence;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use store::Digest;

use super::context::Item;
use super::edit::Edit;
use super::entry::{AttackEntry, PreparedAttack};
use super::trace::{First, Probe, Trace};
use crate::tables::examples::{BACKWARD, Counters, FORWARD};
use crate::{Failure, Watch};

/// Groups of items in parallel, in the order of items.
pub fn in_groups(
    items: &[Item<'_>],
    ready: &dyn PreparedAttack,
    entry: &AttackEntry,
    group_size: usize,
    watch: &dyn Watch,
) -> Result<Vec<Trace>, Failure> {
    let progress = Saved::identity(items, entry);
    let known = progress.as_ref().and_then(|identity| {
        let saved = watch.checkpoint()?;
        Saved::read(&saved, identity, entry)
    });
    let (times, known) = known.map_or((0, BTreeMap::new()), |(times, known)| (times + 1, known));
    if times > 0 {
        let done: usize = known.values().map(Vec::len).sum();
        watch.log(&format!("resumed from a checkpoint after {done} items"));
        watch.resumed(times);
    }
    let done = AtomicU64::new(known.values().map(|group| group.len() as u64).sum());
    let finished = Mutex::new(known);
    let save = |finished: &BTreeMap<usize, Vec<Trace>>| {
        if let Some(identity) = &progress {
            watch.save_checkpoint(&Saved::bytes(identity, times, finished));
        }
    };
    let group = |(n, group): (usize, &[Item<'_>])| {
        if lock(&finished).contains_key(&n) {
            return Ok(());
        }
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        let traces = ready.attack(group)?;
        let done = done.fetch_add(group.len() as u64, Ordering::Relaxed) + group.len() as u64;
        watch.progress(done, items.len() as u64);
        let mut finished = lock(&finished);
        finished.insert(n, traces);
        if watch.checkpoint_due() {
            save(&finished);
        }
        Ok(())
    };
    let all = items.par_chunks(group_size).enumerate().map(group);
    let ended: Result<Vec<()>, Failure> = all.collect();
    let finished = finished.into_inner().unwrap_or_else(|e| e.into_inner());
    if ended.as_ref().is_err_and(|failure| failure.stopped) && !finished.is_empty() {
        save(&finished);
    }
    ended?;
    Ok(finished.into_values().flatten().collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// What is saved.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// The type and version of this record.
    record: String,
    /// Of the items and of what the victim says of them: a stage may attack several models.
    identity: String,
    /// How often the attack had been resumed.
    resumed: u32,
    /// The finished groups, by position.
    groups: Vec<(usize, Vec<SavedTrace>)>,
}

impl Saved {
    const RECORD: &str = "attack-checkpoint/1";

    /// None for items that the model was not asked about before: they do not tell victims apart.
    fn identity(items: &[Item<'_>], entry: &AttackEntry) -> Option<String> {
        let mut bytes = entry.name.as_bytes().to_vec();
        for item in items {
            if item.before.is_empty() {
                return None;
            }
            bytes.push(0);
            bytes.extend(item.id.as_bytes());
            bytes.push(0);
            let before = item.before.iter().flat_map(|p| p.to_le_bytes());
            bytes.extend(before);
        }
        Some(Digest::of(&bytes).to_string())
    }

    fn bytes(identity: &str, resumed: u32, finished: &BTreeMap<usize, Vec<Trace>>) -> Vec<u8> {
        let group =
            |(n, traces): (&usize, &Vec<Trace>)| (*n, traces.iter().map(SavedTrace::of).collect());
        let saved = Saved {
            record: Saved::RECORD.to_owned(),
            identity: identity.to_owned(),
            resumed,
            groups: finished.iter().map(group).collect(),
        };
        rmp_serde::to_vec(&saved).expect("plain data")
    }

    /// None if it is of other items, another victim or another version: then the attack starts from the beginning.
    fn read(
        bytes: &[u8],
        identity: &str,
        entry: &AttackEntry,
    ) -> Option<(u32, BTreeMap<usize, Vec<Trace>>)> {
        let saved: Saved = rmp_serde::from_slice(bytes).ok()?;
        if saved.record != Saved::RECORD || saved.identity != identity {
            return None;
        }
        let group = |(n, traces): (usize, Vec<SavedTrace>)| {
            let traces = traces.into_iter().map(|trace| trace.trace(entry));
            Some((n, traces.collect::<Option<Vec<Trace>>>()?))
        };
        let groups = saved.groups.into_iter().map(group);
        Some((saved.resumed, groups.collect::<Option<_>>()?))
    }
}

/// A trace with owned names.
#[derive(Serialize, Deserialize)]
struct SavedTrace {
    input: SavedSequence,
    edits: Vec<Edit>,
    attacked: bool,
    counters: OwnedCounters,
    firsts: Vec<SavedFirst>,
    probes: Vec<Probe>,
}

/// The same of the first text that reached a confidence.
#[derive(Serialize, Deserialize)]
struct SavedFirst {
    confidence: f32,
    input: SavedSequence,
    edits: Vec<Edit>,
    counters: OwnedCounters,
}

/// Counters with names of their own.
type OwnedCounters = Vec<(String, u64)>;

impl SavedTrace {
    fn of(trace: &Trace) -> SavedTrace {
        let first = |first: &First| SavedFirst {
            confidence: first.confidence,
            input: SavedSequence::of(&first.input),
            edits: first.edits.clone(),
            counters: owned(&first.counters),
        };
        SavedTrace {
            input: SavedSequence::of(&trace.input),
            edits: trace.edits.clone(),
            attacked: trace.attacked,
            counters: owned(&trace.counters),
            firsts: trace.firsts.iter().map(first).collect(),
            probes: trace.probes.clone(),
        }
    }

    fn trace(self, entry: &AttackEntry) -> Option<Trace> {
        let first = |first: SavedFirst| {
            Some(First {
                confidence: first.confidence,
                input: first.input.sequence()?,
                edits: first.edits,
                counters: named(first.counters, entry)?,
            })
        };
        Some(Trace {
            input: self.input.sequence()?,
            edits: self.edits,
            attacked: self.attacked,
            counters: named(self.counters, entry)?,
            firsts: self.firsts.into_iter().map(first).collect::<Option<_>>()?,
            probes: self.probes,
        })
    }
}

fn owned(counters: &Counters) -> OwnedCounters {
    let each = counters.iter();
    each.map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

/// Counters by the names that the attack declares.
fn named(counters: OwnedCounters, entry: &AttackEntry) -> Option<Counters> {
    let known = || {
        [FORWARD, BACKWARD]
            .into_iter()
            .chain(entry.counters.iter().copied())
    };
    let each = counters.into_iter();
    each.map(|(name, count)| Some((known().find(|known| *known == name)?, count)))
        .collect()
}

/// A sequence as plain numbers.
#[derive(Serialize, Deserialize)]
enum SavedSequence {
    Tokens(Vec<u32>),
    Vectors(usize, usize, Vec<f32>),
    Chars(usize, Vec<u32>),
}

impl SavedSequence {
    fn of(sequence: &Sequence) -> SavedSequence {
        match sequence {
            Sequence::Tokens(ids) => SavedSequence::Tokens(ids.clone()),
            Sequence::Vectors(rows) => {
                let (steps, dim) = rows.dim();
                SavedSequence::Vectors(steps, dim, rows.iter().copied().collect())
            }
            Sequence::Chars { width, ids } => SavedSequence::Chars(*width, ids.clone()),
        }
    }

    fn sequence(self) -> Option<Sequence> {
        Some(match self {
            SavedSequence::Tokens(ids) => Sequence::Tokens(ids),
            SavedSequence::Vectors(steps, dim, data) => {
                Sequence::Vectors(Array2::from_shape_vec((steps, dim), data).ok()?)
            }
            SavedSequence::Chars(width, ids) => Sequence::Chars { width, ids },
        })
    }
}
