//! The input tables of a job: from memory if this process has just made them, else from the store.

use std::collections::{BTreeMap, HashMap};

use arrow::record_batch::RecordBatch;
use stages::{Failure, collect};
use store::{Digest, Store};

use super::job::{Job, JobInput};

/// Tables that this process has just made, by digest, so that they need not be read back.
pub type TablesAtHand = HashMap<Digest, RecordBatch>;

/// Why an input is not there.
pub enum InputError {
    /// A table is no longer in the store as it was made.
    Lost(Digest, Box<store::Error>),
    /// The parts of a collected input do not fit together.
    Mismatch(Failure),
}

/// The tables that a job reads, by port.
pub fn load_all(job: &Job, store: &Store) -> Result<BTreeMap<String, RecordBatch>, String> {
    let none = TablesAtHand::new();
    let each = job.inputs.iter();
    let each = each.map(|(port, input)| match load(input, store, &none) {
        Ok(table) => Ok((port.clone(), table)),
        Err(InputError::Mismatch(failure)) => Err(failure.message),
        Err(InputError::Lost(_, error)) => Err(error.to_string()),
    });
    each.collect()
}

/// The table that a port receives.
pub(super) fn load(
    input: &JobInput,
    store: &Store,
    at_hand: &TablesAtHand,
) -> Result<RecordBatch, InputError> {
    let table = |digest: &Digest| match at_hand.get(digest) {
        Some(table) => Ok(table.clone()),
        None => store
            .read(digest)
            .map_err(|error| InputError::Lost(*digest, Box::new(error))),
    };
    match input {
        JobInput::Table(digest) => table(digest),
        JobInput::Collected { axes, parts } => {
            let rows: Vec<_> = parts
                .iter()
                .map(|part| {
                    Ok((
                        part.label.clone(),
                        part.values.clone(),
                        table(&part.digest)?,
                    ))
                })
                .collect::<Result<_, InputError>>()?;
            let axes: Vec<&str> = axes.iter().map(String::as_str).collect();
            collect(&axes, &rows).map_err(|failure| InputError::Mismatch(failure.at("over")))
        }
    }
}
