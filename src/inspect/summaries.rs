//! The numbers of an evaluation as they are shown: each summed up over its executions, with how sure it is.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use stages::proportions::{Origin, is_proportion, origin};
use stages::tables::results::{COL, N, ROW, SEED, TABLE, VALUE};
use store::{Digest, Params, Store};

use super::draws::ExecutedSeeds;
use super::stored::Stored;
use crate::plan::{Plan, Source};
use crate::results::columns;
use crate::results::recorded::Recorded;
use crate::results::replicates::representatives;
use crate::results::statistics::{CellSummary, Replicate};

/// A number of a table by its names, summed up.
pub struct NamedSummary {
    /// The table, the row and the column.
    pub names: [String; 3],
    /// What is shown of it.
    pub summary: CellSummary,
}

/// Sums up the rows of results, in their order; none if the table has no such rows.
pub fn of_results(
    plan: &Plan<'_>,
    store: &Store,
    stored: &Stored,
    source: Source,
    table: &RecordBatch,
) -> Option<Vec<NamedSummary>> {
    let executed = ExecutedSeeds::of(plan, store, stored, source);
    let params = &plan.instances[source.instance].params;
    summed_up(params, table, |origin| {
        executed.behind(origin.from, &origin.values)
    })
}

/// The same of results as a recorded run had them.
pub fn of_recorded(
    recorded: &Recorded,
    step: usize,
    table: &RecordBatch,
) -> Option<Vec<NamedSummary>> {
    let params = &recorded.steps[step].execution.as_ref()?.key.params;
    summed_up(params, table, |origin| {
        representatives(recorded, step, origin.from, &origin.values)
    })
}

/// `behind`: the seeds behind a number, each with the first one that gives the same.
fn summed_up(
    params: &Params,
    table: &RecordBatch,
    behind: impl Fn(&Origin<'_>) -> BTreeMap<i64, i64>,
) -> Option<Vec<NamedSummary>> {
    let names = [TABLE, ROW, COL].map(|name| columns::texts(table, name));
    let [Some(tables), Some(rows), Some(cols)] = names else {
        return None;
    };
    let values = columns::numbers(table, VALUE)?;
    let (seeds, counts) = (columns::wholes(table, SEED)?, columns::wholes(table, N)?);
    let mut known: BTreeMap<[String; 3], BTreeMap<i64, i64>> = BTreeMap::new();
    let mut order: Vec<[String; 3]> = Vec::new();
    let mut cells: BTreeMap<[String; 3], (bool, Vec<Replicate>)> = BTreeMap::new();
    for line in 0..table.num_rows() {
        let names = [&tables[line], &rows[line], &cols[line]];
        let origin = origin(params, names.map(String::as_str));
        let names = names.map(String::clone);
        let seeds_of = known
            .entry(names.clone())
            .or_insert_with(|| origin.as_ref().map(&behind).unwrap_or_default());
        let (_, replicates) = cells.entry(names.clone()).or_insert_with(|| {
            order.push(names);
            let proportion = origin
                .as_ref()
                .is_some_and(|origin| is_proportion(origin.metric));
            (proportion, Vec::new())
        });
        let Some(value) = values[line].filter(|value| value.is_finite()) else {
            continue;
        };
        let seed = seeds[line].map(|seed| seeds_of.get(&seed).copied().unwrap_or(seed));
        replicates.push(Replicate {
            value,
            n: counts[line].and_then(|n| u64::try_from(n).ok()),
            execution: seed.map_or(0, |seed| seed as usize),
        });
    }
    let each = order.into_iter().filter_map(|names| {
        let (proportion, replicates) = &cells[&names];
        let summary = CellSummary::of(replicates, *proportion)?;
        Some(NamedSummary { names, summary })
    });
    Some(each.collect())
}

/// What is stored, from the outputs of each instance.
pub fn stored(outputs: Vec<Option<Vec<Digest>>>) -> Stored {
    Stored {
        outputs,
        faults: BTreeMap::new(),
    }
}
