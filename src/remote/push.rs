//! Puts results into a remote: objects before the entries that name them, so that a push that was cut off shows
//! nothing. What is there already stays, unless gc might be about to remove it. Whether it is there is asked of large
//! objects, and of those that were pushed before: for the others the question costs as much as the bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use store::{Digest, Execution, Inspected, Output, Store};

use super::bucket::{Body, read_small};
use super::entry::Statement;
use super::keys::{PublicKey, SigningKey};
use super::{Remote, entry_name, object_name};
use crate::engine::execute::ExecutionRecord;

/// How many connections there are at once.
pub const CONNECTIONS: usize = 16;

/// Objects of fewer bytes are put there without a question, unless they were pushed before.
const SMALL: u64 = 256 << 10;

/// How old an object must be before gc may remove it.
pub const GRACE: Duration = Duration::from_secs(14 * 86_400);

/// What a push did.
#[derive(Debug, Default, PartialEq)]
pub struct Pushed {
    /// Entries that were written.
    pub entries: usize,
    /// Objects that were uploaded.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Results that somebody else signed: they are left to them.
    pub of_others: usize,
}

/// The keys that somebody keeps under a name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tagged {
    /// The keys.
    pub keys: Vec<Digest>,
}

/// The name of a list of keys.
pub fn tag_name(signer: &PublicKey, name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(safe).collect();
    format!("tags/{}/{name}.json", signer.hex())
}

/// What is pushed, and under which name it is kept.
pub struct PushRequest<'a> {
    /// The results.
    pub executions: &'a [Execution],
    /// What the list of them is called: gc keeps what is in it.
    pub name: &'a str,
    /// Whether these are all results under that name; those of some stages are added to the list.
    pub all: bool,
}

/// Pushes executions and then the list of all of them under a name. `told` hears how many steps of how many are done.
pub fn push(
    remote: &Remote,
    store: &Store,
    key: &SigningKey,
    request: &PushRequest<'_>,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<Pushed, String> {
    let executions = request.executions;
    let own: Vec<&Execution> = executions
        .iter()
        .filter(|execution| execution.facts.signer.is_none())
        .collect();
    // Several results may be one object.
    let mut objects: BTreeMap<Digest, (&Execution, &Output)> = BTreeMap::new();
    for execution in &own {
        let outputs = execution.outputs.iter();
        objects.extend(outputs.map(|output| (output.digest, (*execution, output))));
    }
    let objects: Vec<(&Execution, &Output)> = objects.into_values().collect();
    let (new, bytes, finished) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let all = objects.len() + own.len();
    let one_more = || told(finished.fetch_add(1, Ordering::Relaxed) + 1, all);
    let name = tag_name(&key.public(), request.name);
    let before = pushed_before(remote, &name);
    in_parallel(&objects, |(execution, output)| {
        let asks = output.bytes >= SMALL || before.contains(&execution.key_digest);
        if put_object(remote, store, (execution, output), asks)? {
            new.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(output.bytes, Ordering::Relaxed);
        }
        one_more();
        Ok(())
    })?;
    in_parallel(&own, |execution| {
        let entry = statement(execution, &key.public()).signed(key);
        let name = entry_name(&execution.key_digest, &key.public());
        remote.bucket.put(&name, Body::Bytes(entry.as_bytes()))?;
        one_more();
        Ok(())
    })?;
    let mut keys = match request.all {
        true => BTreeSet::new(),
        false => before,
    };
    keys.extend(executions.iter().map(|execution| execution.key_digest));
    let list = serde_json::to_vec(&Tagged {
        keys: keys.into_iter().collect(),
    });
    let list = list.expect("plain values");
    remote.bucket.put(&name, Body::Bytes(&list))?;
    Ok(Pushed {
        entries: own.len(),
        objects: new.into_inner(),
        bytes: bytes.into_inner(),
        of_others: executions.len() - own.len(),
    })
}

/// The keys that were pushed under this name last. A list that cannot be read is as good as none: it is written anew, and
/// a bucket that refuses says so of the first object.
fn pushed_before(remote: &Remote, name: &str) -> BTreeSet<Digest> {
    let list = read_small(remote.bucket.as_ref(), name).ok().flatten();
    let list = list.and_then(|bytes| serde_json::from_slice::<Tagged>(&bytes).ok());
    list.map_or_else(BTreeSet::new, |list| list.keys.into_iter().collect())
}

/// Puts an object there, unless it is, if that is to be asked; whether it was put.
fn put_object(
    remote: &Remote,
    store: &Store,
    (execution, output): (&Execution, &Output),
    asks: bool,
) -> Result<bool, String> {
    let name = object_name(&output.digest);
    if asks && is_safe(remote, &name, output.bytes)? {
        return Ok(false);
    }
    // Bytes that are damaged here would be damaged there.
    if !matches!(store.inspect(&output.digest), Inspected::Whole(_)) {
        let (instance, output) = (&execution.instance, &output.name);
        return Err(format!(
            "the result `{instance}.{output}` is not whole here: ablate fsck"
        ));
    }
    let path = store.object_path(&output.digest);
    remote.bucket.put(&name, Body::File(&path))?;
    Ok(true)
}

/// Whether an object is there, whole by its length, and so young that gc leaves it alone until its entry is there.
fn is_safe(remote: &Remote, name: &str, bytes: u64) -> Result<bool, String> {
    let there = remote.bucket.look(name)?;
    Ok(there.is_some_and(|there| {
        let age = SystemTime::now().duration_since(there.modified);
        there.bytes == bytes && age.unwrap_or_default() < GRACE / 2
    }))
}

fn statement(execution: &Execution, signer: &PublicKey) -> Statement {
    Statement {
        record: Statement::RECORD.to_owned(),
        key: execution.key_digest,
        kind: execution.key.kind.clone(),
        instance: execution.instance.clone(),
        outputs: execution.outputs.clone(),
        execution: ExecutionRecord {
            started: execution.started,
            wall: execution.wall,
            cpu: execution.cpu,
            peak_memory: execution.peak_memory,
            work: execution.work.clone(),
            log: execution.log.clone(),
            raw: execution.facts.raw.clone(),
            sandbox: execution.facts.sandbox.clone(),
            resumed: execution.facts.resumed,
            ..ExecutionRecord::default()
        },
        environment: execution.environment.as_ref().clone(),
        signer: signer.to_string(),
    }
}

/// Does the same for all, some at once; the first error ends it.
pub fn in_parallel<T: Sync>(
    all: &[T],
    each: impl Fn(&T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|threads| {
        for _ in 0..CONNECTIONS.min(all.len()) {
            threads.spawn(|| {
                while failed.lock().is_ok_and(|failed| failed.is_none()) {
                    let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    if let Err(why) = each(one) {
                        *failed.lock().expect("nobody panics with it") = Some(why);
                    }
                }
            });
        }
    });
    match failed.into_inner().expect("nobody panics with it") {
        Some(why) => Err(why),
        None => Ok(()),
    }
}
