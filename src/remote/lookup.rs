//! Looks a key up and takes its objects: entries of people whom the user trusts, one look for each of them, never a
//! listing. Whatever is wrong is a miss that is told of, and never a result.

use std::sync::Arc;

use store::{Inspected, Output, Staged, Store};

use super::bucket::read_small;
use super::entry::Statement;
use super::keys::Trusted;
use super::{Remote, entry_name, object_name};
use crate::engine::executor::remote::{Answer, ResultSource};
use crate::engine::job::Job;

/// A remote, and whose results count.
pub struct TrustedRemote {
    /// The remote.
    pub remote: Arc<Remote>,
    /// Whose results are taken.
    pub trusted: Vec<Trusted>,
}

impl ResultSource for TrustedRemote {
    fn look_up(&self, job: &Job, store: &Store) -> Answer {
        look_up(&self.remote, &self.trusted, store, job)
    }
}

fn look_up(remote: &Remote, trusted: &[Trusted], store: &Store, wanted: &Job) -> Answer {
    let mut found: Vec<(&Trusted, Statement)> = Vec::new();
    let mut wrong = None;
    for signer in trusted {
        match statement(remote, signer, wanted) {
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
    match fetch(remote, store, &statement.outputs) {
        Ok(staged) => {
            let statement = found.swap_remove(0).1;
            let mut record = statement.execution;
            record.environment = Some(Arc::new(statement.environment));
            record.signer = Some(statement.signer);
            Answer::Found(staged, Box::new(record))
        }
        Err(why) => Answer::Miss(Some(why)),
    }
}

/// What one signer says, if that is of use.
fn statement(remote: &Remote, signer: &Trusted, wanted: &Job) -> Result<Option<Statement>, String> {
    if wanted.kind == "command" && !signer.commands {
        return Ok(None);
    }
    let name = entry_name(&wanted.key, &signer.key);
    let place = |why: String| format!("`{}` of `{}` {why}", name, remote.name);
    let Some(bytes) = read_small(remote.bucket.as_ref(), &name)
        .map_err(|why| format!("cannot be looked up in `{}`: {why}", remote.name))?
    else {
        return Ok(None);
    };
    let statement = Statement::read(&bytes, &wanted.key, &signer.key).map_err(place)?;
    let names: Vec<&String> = statement.outputs.iter().map(|it| &it.name).collect();
    match names.into_iter().eq(&wanted.outputs) && statement.kind == wanted.kind {
        true => Ok(Some(statement)),
        false => Err(place("has other outputs than the stage".to_owned())),
    }
}

/// Takes the objects that the store does not have.
fn fetch(remote: &Remote, store: &Store, outputs: &[Output]) -> Result<Vec<Staged>, String> {
    let mut staged = Vec::new();
    for output in outputs {
        let digest = &output.digest;
        if !matches!(store.inspect(digest), Inspected::Whole(_)) {
            let name = object_name(digest);
            let taken = remote.bucket.get(&name).and_then(|bytes| match bytes {
                Some(mut bytes) => store.take(digest, &mut bytes).map_err(|it| it.to_string()),
                None => Err(format!("`{name}` is not there")),
            });
            taken.map_err(|why| format!("cannot be taken from `{}`: {why}", remote.name))?;
        }
        staged.push(Staged {
            digest: *digest,
            rows: output.rows,
            bytes: output.bytes,
            schema: output.schema.clone(),
        });
    }
    Ok(staged)
}
