//! Lines of an evaluation that nobody asks about are left out of its draws: a search or a figure beside the claims may be
//! most of the work.

use std::collections::{BTreeMap, BTreeSet};

use stages::Role;
use stages::tables::results::TABLE;
use store::{Params, Value};

use super::graph::{Graph, Key};
use crate::plan::{Plan, Source};

/// The parameter of an evaluation that lists its lines.
pub const CELLS: &str = "cells";

/// The tables of a paper that somebody reads in an output, by name; none for all of them.
pub type TablesRead<'a> = &'a dyn Fn(Source) -> Option<BTreeSet<String>>;

/// Leaves out what is not read, with all that only it needs. The parameters of evaluations that are shorter for it.
pub fn leave_out_unread(
    plan: &Plan<'_>,
    graph: &mut Graph,
    targets: &BTreeSet<Key>,
    read: TablesRead<'_>,
) -> BTreeMap<usize, Params> {
    // What another stage reads of an evaluation is not known.
    let inner: BTreeSet<usize> = graph
        .values()
        .flatten()
        .flat_map(|(_, input)| input.keys())
        .map(|key| key.0)
        .collect();
    let mut shorter = BTreeMap::new();
    for (n, inputs) in graph.iter_mut() {
        let (instance, output) = (*n, 0);
        if plan.decl(*n).kind.role() != Role::Results
            || inner.contains(n)
            || !targets.contains(&(instance, output))
        {
            continue;
        }
        let params = &plan.instances[*n].params;
        let (Some(names), Some(cells)) = (
            read(Source { instance, output }),
            params.get(CELLS).and_then(Value::as_list),
        ) else {
            continue;
        };
        let kept: Vec<Value> = cells
            .iter()
            .filter(|cell| may_be_in(cell, &names))
            .cloned()
            .collect();
        if kept.is_empty() || kept.len() == cells.len() {
            continue;
        }
        let from = |cells: &[Value]| -> BTreeSet<String> {
            let from = cells
                .iter()
                .filter_map(|cell| cell.as_table()?.get("from")?.as_text());
            from.map(str::to_owned).collect()
        };
        let (before, after) = (from(cells), from(&kept));
        inputs.retain(|(port, _)| !before.contains(port) || after.contains(port));
        let mut params = Params::clone(params);
        params.insert(CELLS.to_owned(), Value::List(kept));
        shorter.insert(*n, params);
    }
    let needed = behind(graph, targets);
    graph.retain(|n, _| needed.contains(n));
    shorter
}

/// Whether a line may make numbers of these tables.
fn may_be_in(cell: &Value, names: &BTreeSet<String>) -> bool {
    let table = cell.as_table().and_then(|cell| cell.get(TABLE)?.as_text());
    table.is_none_or(|table| table.contains('{') || names.contains(table))
}

/// The stages of the graph that these outputs need.
fn behind(graph: &Graph, targets: &BTreeSet<Key>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = targets.iter().map(|key| key.0).collect();
    while let Some(n) = open.pop() {
        if let Some(inputs) = graph.get(&n)
            && found.insert(n)
        {
            open.extend(
                inputs
                    .iter()
                    .flat_map(|(_, input)| input.keys())
                    .map(|key| key.0),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_left_out_only_if_its_table_is_written_out_and_not_read() {
        let cell =
            |table: &str| Value::Table([(TABLE.to_owned(), Value::Text(table.to_owned()))].into());
        let names = ["fig8".to_owned()].into();
        assert!(may_be_in(&cell("fig8"), &names));
        assert!(may_be_in(&cell("steps to {level}"), &names));
        assert!(!may_be_in(&cell("search"), &names));
        assert!(may_be_in(&Value::Table(BTreeMap::new()), &names));
    }
}
