//! Two stores asked the same questions: for every key that both have executed, did the same come
//! out? Runs nothing, and believes neither.

use std::collections::HashMap;

use serde::Serialize;
use store::{Answer, Digest, Store};

use crate::inspect::verify::grade::{self, Grade};

/// How two stores compare.
#[derive(Debug, Default, Serialize)]
pub struct Challenge {
    /// Keys that both made, with the same outputs.
    pub agree: usize,
    /// Keys that both made, with other outputs.
    pub disagree: Vec<Disagreement>,
    /// Keys that only the first has.
    pub only_here: usize,
    /// Keys that only the other has.
    pub only_there: usize,
    /// Keys for which one store alone has made two different things.
    pub twice: Vec<Twice>,
}

/// A key with two answers.
#[derive(Debug, Serialize)]
pub struct Disagreement {
    /// The instance, as the first store calls it.
    pub stage: String,
    /// The key.
    pub key: Digest,
    /// The first output that differs.
    pub output: String,
    /// What the first store made.
    pub here: Option<Digest>,
    /// What the other made.
    pub there: Option<Digest>,
    /// Where in the tables, if both are still there.
    pub first: Option<Grade>,
    /// The processors, if they are not of one kind.
    pub machines: Option<(String, String)>,
}

/// A key that one store answers in two ways.
#[derive(Debug, Serialize)]
pub struct Twice {
    /// `here` or `there`.
    pub store: &'static str,
    /// The instance.
    pub stage: String,
    /// The key.
    pub key: Digest,
}

/// Compares two stores.
pub fn challenge(here: &Store, there: &Store) -> Result<Challenge, store::Error> {
    let mut found = Challenge::default();
    let ours = newest("here", here.answers()?, &mut found.twice);
    let theirs = newest("there", there.answers()?, &mut found.twice);
    let mut apart: Vec<(&Answer, &Answer)> = Vec::new();
    for (key, mine) in &ours {
        match theirs.get(key) {
            None => found.only_here += 1,
            Some(other) if other.outputs == mine.outputs => found.agree += 1,
            Some(other) => apart.push((mine, other)),
        }
    }
    found.only_there = theirs.keys().filter(|key| !ours.contains_key(*key)).count();
    // In the order of execution: the first is the one to look into.
    apart.sort_by_key(|(mine, _)| mine.execution);
    for (mine, other) in apart {
        found.disagree.push(disagreement(here, mine, there, other)?);
    }
    found
        .twice
        .sort_by(|a, b| (a.store, &a.stage, a.key).cmp(&(b.store, &b.stage, b.key)));
    Ok(found)
}

/// The newest answer to each key; keys with several answers are noted.
fn newest(
    name: &'static str,
    answers: Vec<Answer>,
    twice: &mut Vec<Twice>,
) -> HashMap<Digest, Answer> {
    let mut newest: HashMap<Digest, Answer> = HashMap::with_capacity(answers.len());
    for answer in answers {
        let key = answer.key;
        let stage = answer.instance.clone();
        let outputs = answer.outputs.clone();
        if let Some(before) = newest.insert(key, answer)
            && before.outputs != outputs
            && !twice
                .iter()
                .any(|known| known.store == name && known.key == key)
        {
            twice.push(Twice {
                store: name,
                stage,
                key,
            });
        }
    }
    newest
}

fn disagreement(
    here: &Store,
    mine: &Answer,
    there: &Store,
    other: &Answer,
) -> Result<Disagreement, store::Error> {
    let digest = |answer: &Answer, name: &str| {
        let found = answer.outputs.iter().find(|(known, _)| known == name);
        found.map(|(_, digest)| *digest)
    };
    let names = mine.outputs.iter().chain(&other.outputs);
    let mut names = names.map(|(name, _)| name.as_str());
    let output = names.find(|name| digest(mine, name) != digest(other, name));
    let output = output.unwrap_or_default();
    let (ours, theirs) = (digest(mine, output), digest(other, output));
    let tables = match (ours, theirs) {
        (Some(a), Some(b)) => here.read(&a).ok().zip(there.read(&b).ok()),
        _ => None,
    };
    let first = tables.map(|(a, b)| grade::tables(&a, &b, |_| 0.0));
    let place = |store: &Store, answer: &Answer| -> Result<Option<String>, store::Error> {
        let execution = store.execution(answer.execution)?;
        Ok(execution.map(|execution| {
            let there = &execution.environment;
            format!("{} ({})", there.cpu_model, there.cpu_features.join(" "))
        }))
    };
    let machines = place(here, mine)?.zip(place(there, other)?);
    Ok(Disagreement {
        stage: mine.instance.clone(),
        key: mine.key,
        output: output.to_owned(),
        here: ours,
        there: theirs,
        first,
        machines: machines.filter(|(a, b)| a != b),
    })
}
