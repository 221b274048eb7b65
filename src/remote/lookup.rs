//! Looks a key up and takes its objects: entries of people whom the user trusts, one look for each of them, never a
//! listing. Whatever is wrong is a miss that is told of, and never a result.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use store::{Digest, Inspected, Output, Staged, Store};

use super::bucket::read_all;
use super::entry::Statement;
use super::keys::Trusted;
use super::{Remote, entry_name, object_name};
use crate::engine::executor::remote::{Answer, ResultSource};
use crate::engine::job::Job;

/// A remote, and whose results count.
pub struct TrustedRemote {
    remote: Arc<Remote>,
    /// Whose results are taken.
    trusted: Vec<Trusted>,
    /// How often in a row it could not be asked.
    unanswered: AtomicUsize,
    /// Of how many jobs something was wrong.
    failures: AtomicUsize,
    /// How many bytes the objects have of results that were taken without them: they may not be recorded yet.
    lengths: Mutex<HashMap<Digest, u64>>,
}

/// A remote that could not be asked so often is left alone for the rest of the run: each time takes seconds.
const PATIENCE: usize = 5;

impl ResultSource for TrustedRemote {
    fn look_up(&self, job: &Job, whole: bool, store: &Store) -> Answer {
        let answer = match self.unanswered.load(Ordering::Relaxed) {
            PATIENCE.. => {
                let name = &self.remote.name;
                let why = format!(
                    "is not looked up in `{name}`, which failed to answer {PATIENCE} times in a row and is not asked \
                     again in this run"
                );
                Answer::Miss(Some(why))
            }
            _ => self.answer(job, whole.then_some(store)),
        };
        if matches!(answer, Answer::Miss(Some(_))) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    fn failures(&self) -> usize {
        self.failures.load(Ordering::Relaxed)
    }

    fn fetch(&self, digests: &[Digest], store: &Store) -> Result<(), String> {
        let (mut taken, mut wrong) = (BTreeSet::new(), None);
        for digest in digests {
            let length = self.length(digest, store);
            match length.and_then(|bytes| take(&self.remote, store, digest, bytes)) {
                Ok(()) => drop(taken.insert(*digest)),
                Err(why) => wrong = Some(why),
            }
        }
        // Workers on other machines read them from the disk.
        let kept = store.keep_objects(&taken);
        wrong.map_or_else(|| kept.map_err(|error| error.to_string()), Err)
    }
}

impl TrustedRemote {
    /// A remote of which nothing is known yet.
    pub fn new(remote: Arc<Remote>, trusted: Vec<Trusted>) -> TrustedRemote {
        TrustedRemote {
            remote,
            trusted,
            unanswered: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
            lengths: Mutex::default(),
        }
    }

    /// How many bytes an object has, by the entry that was taken or the record: what a remote has under its name may
    /// have no end.
    fn length(&self, digest: &Digest, store: &Store) -> Result<u64, String> {
        let lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = lengths.get(digest) {
            return Ok(*bytes);
        }
        let recorded = store.recorded_bytes(digest);
        recorded
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("the length of {digest} is not recorded"))
    }

    /// Objects are put into the store if there is one.
    fn answer(&self, wanted: &Job, into: Option<&Store>) -> Answer {
        let remote = self.remote.as_ref();
        let mut found: Vec<(&Trusted, Statement)> = Vec::new();
        let mut wrong = None;
        for signer in &self.trusted {
            match self.statement(signer, wanted) {
                Ok(None) => {}
                Ok(Some(statement)) => found.push((signer, statement)),
                Err(why) => wrong = Some(why),
            }
        }
        let digests = |it: &Statement| it.outputs.iter().map(|it| it.digest).collect::<Vec<_>>();
        let Some((first, statement)) = found.first() else {
            return Answer::Miss(wrong);
        };
        if let Some((other, _)) = found
            .iter()
            .find(|(_, it)| digests(it) != digests(statement))
        {
            let why = format!(
                "is given differently by {} and {} in `{}`: it is computed here",
                first.name, other.name, remote.name
            );
            return Answer::Miss(Some(why));
        }
        let fetched = into.map_or(Ok(()), |store| {
            let mut outputs = statement.outputs.iter();
            outputs.try_for_each(|output| take(remote, store, &output.digest, output.bytes))
        });
        match fetched {
            Ok(()) => {
                let staged = statement.outputs.iter().map(staged).collect();
                let statement = found.swap_remove(0).1;
                let outputs = statement.outputs.iter();
                let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
                lengths.extend(outputs.map(|output| (output.digest, output.bytes)));
                drop(lengths);
                let mut record = statement.execution;
                record.environment = Some(Arc::new(statement.environment));
                record.signer = Some(statement.signer);
                Answer::Found(staged, Box::new(record))
            }
            Err(why) => Answer::Miss(Some(why)),
        }
    }

    /// What one signer says, if that is of use.
    fn statement(&self, signer: &Trusted, wanted: &Job) -> Result<Option<Statement>, String> {
        let remote = self.remote.as_ref();
        if wanted.kind == "command" && !signer.commands {
            return Ok(None);
        }
        let name = entry_name(&wanted.key, &signer.key);
        let place = |why: String| format!("`{}` of `{}` {why}", name, remote.name);
        let unread = |why: String| format!("cannot be looked up in `{}`: {why}", remote.name);
        let answered = remote.bucket.get(&name);
        match &answered {
            Ok(_) => self.unanswered.store(0, Ordering::Relaxed),
            Err(_) => drop(self.unanswered.fetch_add(1, Ordering::Relaxed)),
        }
        let Some(reader) = answered.map_err(unread)? else {
            return Ok(None);
        };
        let bytes = read_all(reader, &name).map_err(unread)?;
        let statement = Statement::read(&bytes, &wanted.key, &signer.key).map_err(place)?;
        let names: Vec<&String> = statement.outputs.iter().map(|it| &it.name).collect();
        match names.into_iter().eq(&wanted.outputs) && statement.kind == wanted.kind {
            true => Ok(Some(statement)),
            false => Err(place("has other outputs than the stage".to_owned())),
        }
    }
}

/// Takes an object, unless the store has it. One that is longer than its entry says is not read to its end, which it may
/// not have.
fn take(remote: &Remote, store: &Store, digest: &Digest, bytes: u64) -> Result<(), String> {
    if matches!(store.inspect(digest), Inspected::Whole(_)) {
        return Ok(());
    }
    let name = object_name(digest);
    let taken = remote.bucket.get(&name).and_then(|found| match found {
        Some(found) => store
            .take(digest, &mut found.take(bytes.saturating_add(1)))
            .map_err(|it| it.to_string()),
        None => Err(format!("`{name}` is not there")),
    });
    taken.map_err(|why| format!("cannot be taken from `{}`: {why}", remote.name))
}

fn staged(output: &Output) -> Staged {
    Staged {
        digest: output.digest,
        rows: output.rows,
        bytes: output.bytes,
        schema: output.schema.clone(),
    }
}
