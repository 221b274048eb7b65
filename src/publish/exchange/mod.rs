//! What a run did, in the forms that other tools read: [`ro_crate`] and [`open_lineage`].
//! Reads the store and runs nothing.

pub mod open_lineage;
pub mod ro_crate;

use std::collections::BTreeMap;

use store::{Acceptance, Execution, Run, Store};

/// A run with the execution behind each of its instances.
pub struct Record {
    /// The run.
    pub run: Run,
    /// Executions by number, each once: found in the cache or made by this run.
    pub executions: BTreeMap<i64, Execution>,
    /// Changes of code that somebody accepted, so that an execution stood for another key.
    pub accepted: Vec<Acceptance>,
}

impl Record {
    /// Reads a run.
    pub fn of(store: &Store, run: Run) -> Result<Record, store::Error> {
        let mut executions = BTreeMap::new();
        let (all, mut accepted) = (store.acceptances()?, Vec::new());
        for used in store.uses(run.id)? {
            let stood_in = |one: &&Acceptance| {
                Some(one.new_key) == used.key && Some(one.execution) == used.execution
            };
            accepted.extend(all.iter().rev().find(stood_in).cloned());
            let execution = match used.execution {
                Some(id) => store.execution(id)?,
                None => None,
            };
            // What was skipped has none.
            executions.extend(execution.map(|execution| (execution.id, execution)));
        }
        Ok(Record {
            run,
            executions,
            accepted,
        })
    }
}

/// A time as ISO 8601 in UTC, to the microsecond.
fn time(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        Err(_) => "1970-01-01T00:00:00.000000Z".to_owned(),
    }
}
