//! Results that are not tidy tables: the outputs of a pipeline's last stages, as they are.

use std::collections::HashSet;

use serde::Serialize;
use stages::Role;
use store::Store;

use super::run_tables::is_result;
use crate::results::columns;
use crate::results::recorded::Recorded;
use crate::results::table;

/// A table, in words.
#[derive(Serialize)]
pub struct Plain {
    /// What `ablate show` calls it.
    pub name: String,
    /// The step that made it, or the first of several.
    pub step: usize,
    /// Names of its columns, and whether they hold numbers.
    pub columns: Vec<(String, bool)>,
    /// Its first rows.
    pub rows: Vec<Vec<String>>,
    /// How many rows it has.
    pub total: usize,
    /// Whether it stands in the pipeline file.
    pub typed: bool,
}

/// Whose last outputs are results. The others' are models, tokens and the like.
const ROLES: [Role; 4] = [Role::Query, Role::Typed, Role::Program, Role::Results];
/// How many rows of a table a page has.
const ROWS: usize = 1000;
/// How many such tables.
const TABLES: usize = 40;

/// The outputs that no stage of the run reads, instances of one stage as one table.
pub fn tables(store: &Store, recorded: &Recorded) -> Vec<Plain> {
    let read = recorded.read();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (at, step) in recorded.steps.iter().enumerate() {
        for (n, output) in step.outputs().iter().enumerate() {
            let wanted = ROLES.contains(&step.role())
                && !read.contains(&(at, n))
                && !is_result(step, output, false);
            if !wanted || found.len() == TABLES || !seen.insert((step.name(), &output.name)) {
                continue;
            }
            let name = match step.outputs().len() {
                1 => step.name().to_owned(),
                _ => format!("{}.{}", step.name(), output.name),
            };
            if let Ok((table, step)) = table::of_run(store, recorded, &name)
                && columns::is_flat(&table)
                && table.num_rows() > 0
            {
                let typed = recorded.steps[step].role() == Role::Typed;
                found.push(Plain {
                    typed,
                    ..shown(name, step, &table)
                });
            }
        }
    }
    found
}

fn shown(name: String, step: usize, table: &arrow::record_batch::RecordBatch) -> Plain {
    let head = table.slice(0, table.num_rows().min(ROWS));
    let schema = table.schema();
    let fields = schema.fields().iter();
    let words: Vec<Vec<String>> = head
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match field.data_type().is_floating() {
            true => {
                let numbers = columns::numbers(&head, field.name()).unwrap_or_default();
                numbers
                    .into_iter()
                    .map(|x| x.map(columns::short).unwrap_or_default())
                    .collect()
            }
            false => columns::words(column),
        })
        .collect();
    Plain {
        name,
        step,
        columns: fields
            .map(|f| (f.name().clone(), f.data_type().is_numeric()))
            .collect(),
        rows: (0..head.num_rows())
            .map(|row| words.iter().map(|column| column[row].clone()).collect())
            .collect(),
        total: table.num_rows(),
        typed: false,
    }
}
