//! Results that manuscripts refer to: what `lint` and `render` share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use arrow::record_batch::RecordBatch;
use store::{Digest, Run, Store};

use super::exit::Exit;
use crate::diagnostic::Diagnostic;
use crate::inspect::stored::{self, Stored};
use crate::plan::{Plan, Source};
use crate::publish::manuscript::cells::{self, Known};
use crate::publish::manuscript::lint::Past;
use crate::results::{cell, find};

/// The results of a pipeline: the current ones, or those of a past run.
pub(super) struct ManuscriptResults<'a> {
    plan: &'a Plan<'a>,
    store: &'a Store,
    stored: Stored,
    /// Tables that were read before: a manuscript names the same ones again and again.
    read: RefCell<HashMap<Digest, RecordBatch>>,
}

impl<'a> ManuscriptResults<'a> {
    pub(super) fn read_from(
        plan: &'a Plan<'a>,
        store: &'a Store,
        run: Option<&Run>,
    ) -> Result<ManuscriptResults<'a>, store::Error> {
        let wanted = vec![true; plan.instances.len()];
        Ok(ManuscriptResults {
            stored: match run {
                Some(run) => stored::of_run(plan, store, run)?,
                None => stored::now(plan, &wanted, Some(store)),
            },
            plan,
            store,
            read: RefCell::default(),
        })
    }

    pub(super) fn table(&self, digest: &Digest) -> Result<RecordBatch, store::Error> {
        if let Some(table) = self.read.borrow().get(digest) {
            return Ok(table.clone());
        }
        let table = self.store.peek(digest)?;
        self.read.borrow_mut().insert(*digest, table.clone());
        Ok(table)
    }

    pub(super) fn digest(&self, source: Source) -> Option<Digest> {
        let outputs = self.stored.outputs[source.instance].as_ref()?;
        Some(outputs[source.output])
    }

    /// The contents of a cell.
    pub(super) fn cell(&self, name: &str) -> Result<String, String> {
        let found = find::find(self.plan, name).map_err(|d| d.title().to_owned())?;
        let Some(wanted) = &found.cell else {
            return Err(format!("`{name}` is a table, not a cell of one"));
        };
        let [source] = found.outputs[..] else {
            return Err(format!("`{name}` has several instances"));
        };
        let label = &self.plan.instances[source.instance].label;
        let digest = self.digest(source);
        let digest = digest.ok_or_else(|| match self.stored.faults.get(&source.instance) {
            Some(unusable) => unusable.to_string(),
            None => format!("`{label}` has not been run"),
        })?;
        let table = self.table(&digest).map_err(|error| error.to_string())?;
        let cell = cell::cell(&table, wanted);
        cell.map(|cell| cell.value)
            .map_err(|d| d.title().to_owned())
    }

    /// All current numbers.
    pub(super) fn known(&self) -> Vec<Known> {
        let outputs = cells::outputs(self.plan).into_iter();
        let made = outputs.filter_map(|source| Some((source, self.digest(source)?)));
        self.of(made)
    }

    /// Results whose numbers are unknown, because what is stored is damaged, missing or altered.
    pub(super) fn unusable(&self) -> Vec<String> {
        let mut found = Vec::new();
        for source in cells::outputs(self.plan) {
            let why = match (
                self.stored.faults.get(&source.instance),
                self.digest(source),
            ) {
                (Some(unusable), _) if self.stored.is_wrong(source.instance) => {
                    unusable.to_string()
                }
                (None, Some(digest)) => match self.table(&digest) {
                    Err(error) => error.to_string(),
                    Ok(_) => continue,
                },
                _ => continue,
            };
            if !found.contains(&why) {
                found.push(why);
            }
        }
        found
    }

    pub(super) fn of(&self, made: impl Iterator<Item = (Source, Digest)>) -> Vec<Known> {
        let mut known = Vec::new();
        for (source, digest) in made {
            // What gc took, or what is damaged, is not known any more.
            if let Ok(table) = self.table(&digest) {
                known.extend(cells::of_table(&name(self.plan, source), &table));
            }
        }
        known
    }

    /// The numbers of past runs that are not current, newest first.
    pub(super) fn past(&self, runs: &[Run]) -> Result<Vec<Past>, store::Error> {
        let outputs = cells::outputs(self.plan);
        let mut seen: Vec<Digest> = outputs.iter().filter_map(|s| self.digest(*s)).collect();
        let mut past = Vec::new();
        for run in runs {
            let uses = self.store.uses(run.id)?;
            let mut made = Vec::new();
            for source in &outputs {
                let instance = &self.plan.instances[source.instance];
                let used = uses.iter().find(|used| used.instance == instance.label);
                let Some(id) = used.and_then(|used| used.execution) else {
                    continue;
                };
                if !self.store.unsealed([id])?.is_empty() {
                    continue;
                }
                let execution = self.store.execution(id)?;
                let outputs = execution.map(|it| it.outputs).unwrap_or_default();
                let wanted = &instance.outputs[source.output];
                let output = outputs.iter().find(|output| output.name == *wanted);
                if let Some(output) = output.filter(|output| !seen.contains(&output.digest)) {
                    seen.push(output.digest);
                    made.push((*source, output.digest));
                }
            }
            past.push(Past {
                run: run.id.0,
                cells: self.of(made.into_iter()),
            });
        }
        Ok(past)
    }
}

/// How references call an output: `stage`, `stage.output` if it is not the first, and with axes
/// `stage[axis=value]`.
fn name(plan: &Plan<'_>, source: Source) -> String {
    let instance = &plan.instances[source.instance];
    match source.output {
        0 => instance.label.clone(),
        n => match instance.label.split_once('[') {
            Some((stage, axes)) => format!("{stage}.{}[{axes}", instance.outputs[n]),
            None => format!("{}.{}", instance.label, instance.outputs[n]),
        },
    }
}

pub(super) fn read(path: &Path) -> Result<String, Exit> {
    std::fs::read_to_string(path).map_err(|error| {
        Diagnostic::new(format!("cannot read `{}`: {error}", path.display())).into()
    })
}
