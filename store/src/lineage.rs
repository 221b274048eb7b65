//! Where a result came from: its execution, the executions that made what it read, and so on.
//! Reads rows only; whether objects are still as they were made is for the caller to see.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use crate::digest::Digest;
use crate::error::Error;
use crate::key::CodeFiles;
use crate::records::rows::{Environments, files_of, one_execution};
use crate::records::{Execution, InputUsed};
use crate::store::Store;

/// Executions and what they have of each other.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    /// Every execution once, makers before readers.
    pub links: Vec<Link>,
    /// The positions of the requested executions, in the order of the request.
    pub roots: Vec<usize>,
    /// The sources behind each code fingerprint.
    pub codes: BTreeMap<Digest, CodeFiles>,
}

/// One execution and who made its inputs.
#[derive(Clone, Debug)]
pub struct Link {
    /// The execution.
    pub execution: Execution,
    /// For each of its inputs, the position of what made it; `None` if no row knows.
    pub makers: Vec<Option<usize>>,
}

impl Store {
    /// The lineage of some executions, down to those that read nothing.
    pub fn lineage(&self, executions: &[i64]) -> Result<Lineage, Error> {
        self.query("read the lineage in", |rows| walk(rows, executions))
    }

    /// The digests of outputs that begin with these digits, and the newest successful execution
    /// that made each; at most `limit`.
    pub fn outputs_beginning(
        &self,
        digits: &str,
        limit: usize,
    ) -> Result<Vec<(Digest, i64)>, Error> {
        self.query("read the outputs in", |rows| {
            // `g` follows `f`: all digests that begin so lie between, and the index finds them.
            rows.prepare_cached(
                "SELECT o.digest, max(o.execution) FROM outputs o
                 JOIN executions x ON x.id = o.execution AND x.ok = 1
                 WHERE o.digest >= ?1 AND o.digest < ?1 || 'g' GROUP BY o.digest LIMIT ?2",
            )?
            .query_map(params![digits, limit as i64], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect()
        })
    }
}

impl Store {
    /// What was made for a key, each time that it was made, newest first.
    pub fn results_of(&self, key: &Digest) -> Result<Vec<Answer>, Error> {
        self.query("look up a key in", |rows| {
            let mut query = rows.prepare_cached(
                "SELECT x.id, x.key, x.instance, o.name, o.digest FROM executions x
                 JOIN outputs o ON o.execution = x.id
                 WHERE x.key = ?1 AND x.ok = 1 ORDER BY x.id DESC, o.ordinal",
            )?;
            grouped(query.query([key])?)
        })
    }
}

impl Store {
    /// Keys that were executed well more than once: their results may differ.
    pub fn made_again(&self) -> Result<HashSet<Digest>, Error> {
        self.query("read the keys in", |rows| {
            rows.prepare_cached(
                "SELECT key FROM executions WHERE ok = 1 GROUP BY key HAVING count(*) > 1",
            )?
            .query_map([], |row| row.get(0))?
            .collect()
        })
    }
}

/// What a store made for one key at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The key.
    pub key: Digest,
    /// The execution.
    pub execution: i64,
    /// The instance that it was called then.
    pub instance: String,
    /// What it made.
    pub outputs: Outputs,
}

impl Store {
    /// Everything that was ever made, oldest first.
    pub fn answers(&self) -> Result<Vec<Answer>, Error> {
        self.query("read the results in", |rows| {
            let mut query = rows.prepare(
                "SELECT x.id, x.key, x.instance, o.name, o.digest FROM executions x
                 JOIN outputs o ON o.execution = x.id WHERE x.ok = 1 ORDER BY x.id, o.ordinal",
            )?;
            grouped(query.query([])?)
        })
    }
}

/// Rows of outputs, put together by execution.
fn grouped(mut found: rusqlite::Rows<'_>) -> rusqlite::Result<Vec<Answer>> {
    let mut answers: Vec<Answer> = Vec::new();
    while let Some(row) = found.next()? {
        let execution = row.get(0)?;
        if answers
            .last()
            .is_none_or(|last| last.execution != execution)
        {
            answers.push(Answer {
                key: row.get(1)?,
                execution,
                instance: row.get(2)?,
                outputs: Vec::new(),
            });
        }
        let last = answers.last_mut().expect("just pushed");
        last.outputs.push((row.get(3)?, row.get(4)?));
    }
    Ok(answers)
}

/// The outputs of an execution: names and digests, in order.
pub type Outputs = Vec<(String, Digest)>;

/// An execution whose inputs are being followed.
struct Open {
    execution: Execution,
    makers: Vec<Option<i64>>,
    next: usize,
}

/// In depth, without recursion: a chain may have a hundred thousand links.
fn walk(rows: &Connection, asked: &[i64]) -> rusqlite::Result<Lineage> {
    let mut lineage = Lineage::default();
    let mut places: HashMap<i64, usize> = HashMap::new();
    let mut environments = Environments::new();
    for root in asked {
        let mut path = Vec::new();
        let mut enter = Some(*root);
        loop {
            if let Some(id) = enter.take()
                && !places.contains_key(&id)
                && let Some(execution) = one_execution(rows, id, &mut environments)?
            {
                let makers = execution.inputs.iter();
                let makers = makers.map(|input| maker(rows, &execution, input));
                let makers = makers.collect::<rusqlite::Result<_>>()?;
                path.push(Open {
                    execution,
                    makers,
                    next: 0,
                });
            }
            let Some(open) = path.last_mut() else { break };
            match open.makers.get(open.next) {
                Some(maker) => {
                    open.next += 1;
                    enter = *maker;
                }
                None => {
                    let done = path.pop().expect("just looked at");
                    places.insert(done.execution.id, lineage.links.len());
                    let makers = done.makers.iter();
                    let makers = makers.map(|id| places.get(id.as_ref()?).copied());
                    lineage.links.push(Link {
                        makers: makers.collect(),
                        execution: done.execution,
                    });
                }
            }
        }
        lineage.roots.extend(places.get(root));
    }
    for link in &lineage.links {
        let code = link.execution.key.code;
        if !lineage.codes.contains_key(&code)
            && let Some(files) = files_of(rows, &code)?
        {
            lineage.codes.insert(code, files);
        }
    }
    Ok(lineage)
}

/// The execution that made an input: what the reader's run used, or else the newest older one
/// that made these bytes. Only older ones count, so that no row can close a cycle.
fn maker(
    rows: &Connection,
    reader: &Execution,
    input: &InputUsed,
) -> rusqlite::Result<Option<i64>> {
    let instance = instance(&input.producer);
    let used = rows
        .prepare_cached(
            "SELECT u.execution FROM uses u JOIN outputs o ON o.execution = u.execution
             WHERE u.run = ?1 AND u.instance = ?2 AND o.digest = ?3 AND u.execution < ?4 LIMIT 1",
        )?
        .query_row(
            params![reader.run.0, instance, input.digest, reader.id],
            |row| row.get(0),
        )
        .optional()?;
    if used.is_some() {
        return Ok(used);
    }
    rows.prepare_cached(
        "SELECT x.id FROM outputs o JOIN executions x ON x.id = o.execution
         WHERE o.digest = ?1 AND x.ok = 1 AND x.id < ?3
         ORDER BY x.instance = ?2 DESC, x.id DESC LIMIT 1",
    )?
    .query_row(params![input.digest, instance, reader.id], |row| row.get(0))
    .optional()
}

/// The instance in `train[lr=0.5].weights`: what stands before the output's name.
fn instance(producer: &str) -> &str {
    let after = producer.rfind(']').map_or(0, |at| at + 1);
    match producer[after..].find('.') {
        Some(dot) => &producer[..after + dot],
        None => producer,
    }
}

#[cfg(test)]
mod tests {
    use super::instance;

    #[test]
    fn a_producer_names_an_instance_and_perhaps_an_output() {
        assert_eq!(instance("numbers"), "numbers");
        assert_eq!(instance("train.weights"), "train");
        assert_eq!(instance("train[lr=0.5]"), "train[lr=0.5]");
        assert_eq!(instance("train[lr=0.5].weights"), "train[lr=0.5]");
    }
}
