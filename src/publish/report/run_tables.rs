//! Which outputs of a run are results, and the tables of a paper that are in them.

use stages::Role;
use store::{Output, Store};

use super::tables::{self, PaperTable};
use crate::results::recorded::{self, Recorded, Step};

/// Every table of a paper in the results of a run; of an ablation, those of the base.
pub fn paper_tables(store: &Store, recorded: &Recorded) -> Vec<PaperTable> {
    let read = recorded.read();
    let mut found = Vec::new();
    let steps = recorded.steps.iter().enumerate();
    for (at, step) in steps.filter(|(_, step)| !recorded.is_variant(step)) {
        for (n, output) in step.outputs().iter().enumerate() {
            if !is_result(step, output, read.contains(&(at, n))) {
                continue;
            }
            let table = recorded::table(store, output);
            let tables = table.and_then(|table| tables::read(at, n, recorded, &table));
            for mut table in tables.unwrap_or_default() {
                if table.profile.is_empty() {
                    table.profile = recorded.run.profile.clone().unwrap_or_default();
                }
                found.push(table);
            }
        }
    }
    found
}

/// Whether an output holds tidy results of ours. A table that somebody typed for another stage to
/// read, such as the paper's own numbers, is none.
pub(super) fn is_result(step: &Step, output: &Output, read: bool) -> bool {
    let typed = step.role() == Role::Typed && (read || !tables::is_measured(&output.schema));
    !typed && tables::is_tidy(&output.schema)
}
