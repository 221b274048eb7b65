//! Two runs side by side: which stages differ, in which parameters, tables and cells.

use std::collections::BTreeMap;
use std::fmt;

use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::Serialize;
use store::{Digest, Execution, RunId, Store, UseRecord};

use crate::inspect::explain::{self, Difference};

/// Two runs.
#[derive(Debug, Serialize)]
pub struct Runs {
    /// How many stage instances are the same in both.
    pub same: usize,
    /// The others, in the order of their names.
    pub differ: Vec<Instance>,
    /// How many have a record that was altered, in either.
    pub altered: usize,
}

/// A stage instance that is not the same in both.
#[derive(Debug, Serialize)]
pub struct Instance {
    /// Its name.
    pub stage: String,
    /// Why it cannot be compared, if it cannot.
    pub note: Option<String>,
    /// In which fields its key differs.
    pub fields: Vec<Difference>,
    /// Which outputs differ.
    pub outputs: Vec<TableDifference>,
}

/// What two runs did differently.
pub fn runs(store: &Store, old: RunId, new: RunId) -> Result<Runs, store::Error> {
    let mut pairs: BTreeMap<String, [Option<UseRecord>; 2]> = BTreeMap::new();
    for (side, run) in [old, new].into_iter().enumerate() {
        for used in store.uses(run)? {
            let pair = pairs.entry(used.instance.clone()).or_default();
            pair[side] = Some(used);
        }
    }
    let mut found = Runs {
        same: 0,
        differ: Vec::new(),
        altered: 0,
    };
    let both = pairs.values().flatten().flatten();
    let unsealed = store.unsealed(both.filter_map(|used| used.execution))?;
    let altered = |used: &Option<UseRecord>| unsealed.get(&used.as_ref()?.execution?);
    let executed = |used: &Option<UseRecord>| match used.as_ref().and_then(|used| used.execution) {
        Some(id) => store.execution(id),
        None => Ok(None),
    };
    for (stage, [a, b]) in pairs {
        if let Some(why) = altered(&a).or_else(|| altered(&b)) {
            found.altered += 1;
            found.differ.push(Instance {
                stage,
                note: Some(format!("its stored result is altered ({why})")),
                fields: Vec::new(),
                outputs: Vec::new(),
            });
            continue;
        }
        if let (Some(a), Some(b)) = (&a, &b)
            && a.key == b.key
            && a.execution == b.execution
        {
            found.same += 1;
            continue;
        }
        let mut instance = Instance {
            stage,
            note: None,
            fields: Vec::new(),
            outputs: Vec::new(),
        };
        match (executed(&a)?, executed(&b)?) {
            (Some(was), Some(now)) => {
                let code = |execution: &Execution| store.code_files(&execution.key.code);
                instance.fields = explain::differences(
                    &was.key,
                    &code(&was)?.unwrap_or_default(),
                    &now.key,
                    &code(&now)?.unwrap_or_default(),
                );
                instance.outputs = outputs(store, &was, &now);
            }
            _ => {
                instance.note = Some(match (&a, &b) {
                    (Some(_), None) => format!("only in run {old}"),
                    (None, Some(_)) => format!("only in run {new}"),
                    _ => "not executed in both".to_owned(),
                });
            }
        }
        found.differ.push(instance);
    }
    Ok(found)
}

/// An output that differs.
#[derive(Debug, Serialize)]
pub struct TableDifference {
    /// The output.
    pub output: String,
    /// Its digest before, if it was there.
    pub was: Option<Digest>,
    /// Its digest now, if it is there.
    pub now: Option<Digest>,
    /// What differs inside, as far as the tables can be read and compared.
    pub detail: String,
    /// The first cells that differ: row, column, before, after.
    pub cells: Vec<(usize, String, String, String)>,
}

/// How many cells are shown.
const CELLS: usize = 5;

impl fmt::Display for TableDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |digest: &Option<Digest>| digest.map_or("-".to_owned(), |d| d.short());
        write!(
            f,
            "{}: {} -> {}",
            self.output,
            short(&self.was),
            short(&self.now)
        )?;
        if !self.detail.is_empty() {
            write!(f, ", {}", self.detail)?;
        }
        for (row, column, was, now) in &self.cells {
            write!(f, "\n    row {row} {column}: {was} -> {now}")?;
        }
        Ok(())
    }
}

/// The outputs in which two executions differ.
pub fn outputs(store: &Store, old: &Execution, new: &Execution) -> Vec<TableDifference> {
    let digest = |execution: &Execution, name: &str| {
        let output = execution.outputs.iter().find(|output| output.name == name);
        output.map(|output| output.digest)
    };
    let mut names: Vec<&str> = old
        .outputs
        .iter()
        .map(|output| output.name.as_str())
        .collect();
    for output in &new.outputs {
        if !names.contains(&output.name.as_str()) {
            names.push(&output.name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        let (was, now) = (digest(old, name), digest(new, name));
        if was == now {
            continue;
        }
        let (detail, cells) = match (was, now) {
            (Some(was), Some(now)) => match (store.peek(&was), store.peek(&now)) {
                (Ok(was), Ok(now)) => inside(&was, &now),
                (Err(error), _) | (_, Err(error)) => (error.to_string(), Vec::new()),
            },
            _ => (String::new(), Vec::new()),
        };
        found.push(TableDifference {
            output: name.to_owned(),
            was,
            now,
            detail,
            cells,
        });
    }
    found
}

/// A vector of weights is longer than anybody reads.
const LONGEST: usize = 100;

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

type Cells = Vec<(usize, String, String, String)>;

fn inside(old: &RecordBatch, new: &RecordBatch) -> (String, Cells) {
    if old.schema() != new.schema() {
        let text = format!(
            "columns were {}, now {}",
            store::schema_text(old.schema_ref()),
            store::schema_text(new.schema_ref())
        );
        return (text, Vec::new());
    }
    let mut cells = Vec::new();
    let mut rows = std::collections::BTreeSet::new();
    let options = FormatOptions::default().with_null("null");
    let shared = old.num_rows().min(new.num_rows());
    for (at, field) in old.schema().fields().iter().enumerate() {
        let (was, now) = (old.column(at), new.column(at));
        // A value that cannot be printed still counts as a difference.
        let formats = [was, now].map(|array| ArrayFormatter::try_new(array, &options).ok());
        let show = |side: usize, row: usize| match &formats[side] {
            Some(format) => cut(format.value(row).to_string()),
            None => "?".to_owned(),
        };
        for row in 0..shared {
            if was.slice(row, 1).as_ref() != now.slice(row, 1).as_ref() {
                rows.insert(row);
                if cells.len() < CELLS {
                    cells.push((row, field.name().clone(), show(0, row), show(1, row)));
                }
            }
        }
    }
    let lengths = match old.num_rows() == new.num_rows() {
        true => String::new(),
        false => format!(", {} rows were {}", new.num_rows(), old.num_rows()),
    };
    (
        format!("{} of {shared} rows differ{lengths}", rows.len()),
        cells,
    )
}
