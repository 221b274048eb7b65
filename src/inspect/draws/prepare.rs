//! What must be recomputed for a draw, found in the plan, with all that it reads loaded once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::record_batch::RecordBatch;
use stages::Role;
use stages::item_local::row_filter;
use store::{Digest, Params, Store, Value};

use super::columns::columns_read;
use super::executions::{AxisTexts, keys_behind, representatives};
use super::graph::{Graph, Key, Reached};
use super::items::{self, ID, ItemTable, Population};
use super::outline::Outline;
use super::seeds::{Behind, ResultCells};
use crate::inspect::stored::Stored;
use crate::plan::{Plan, Source};

/// A stage that is recomputed.
#[derive(Debug)]
pub struct Node {
    /// Its instance.
    pub instance: usize,
    /// Whether it changes with the items.
    pub by_items: bool,
    /// Whether it changes with the seeds.
    pub by_seeds: bool,
}

/// All that draws need.
pub struct Prepared<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) graph: Graph,
    shorter: BTreeMap<usize, Params>,
    /// Stages to recompute, readers after what they read.
    pub(super) nodes: Vec<Node>,
    /// Tables as they are stored.
    pub(super) fixed: HashMap<Key, RecordBatch>,
    /// Tables of items.
    pub(super) items: Vec<(Key, ItemTable)>,
    pub(super) populations: Vec<Population>,
    /// The numbers of each evaluation.
    pub(super) results: BTreeMap<usize, ResultCells>,
    /// For each instance of the plan, whether another seed might have given something else.
    seeded: Vec<bool>,
}

/// Loads what an outline reads.
pub fn prepare<'a>(
    outline: Outline<'a>,
    store: &Store,
    stored: &Stored,
) -> Result<Prepared<'a>, store::Error> {
    let Outline {
        plan,
        graph,
        reached,
        shorter,
        seeded,
        ..
    } = outline;
    let digest = |key: Key| stored.outputs[key.0].as_ref()?.get(key.1).copied();
    let (items, populations, rest) = load_items(plan, store, &graph, &shorter, &reached, digest)?;
    let mut fixed: HashMap<Key, RecordBatch> = rest.into_iter().collect();
    for key in &reached.tables {
        if let Some(digest) = digest(*key) {
            fixed.insert(*key, store.read(&digest)?);
        }
    }
    let mut prepared = Prepared {
        plan,
        graph,
        shorter,
        nodes: Vec::new(),
        fixed,
        items,
        populations,
        results: BTreeMap::new(),
        seeded,
    };
    prepared.classify(&reached, stored);
    Ok(prepared)
}

/// Tables of items, their populations, and those of attacks on one item alone, which stay as they are.
type Loaded = (
    Vec<(Key, ItemTable)>,
    Vec<Population>,
    Vec<(Key, RecordBatch)>,
);

fn load_items(
    plan: &Plan<'_>,
    store: &Store,
    graph: &Graph,
    shorter: &BTreeMap<usize, Params>,
    reached: &Reached,
    digest: impl Fn(Key) -> Option<Digest>,
) -> Result<Loaded, store::Error> {
    let mut loaded: Vec<(Key, &str, bool, RecordBatch)> = Vec::new();
    for (key, data) in &reached.items {
        let Some(digest) = digest(*key) else { continue };
        let wanted = wanted(plan, graph, shorter, reached, *key);
        let ids = wanted.as_ref().is_none_or(|names| names.contains(ID));
        let table = match &wanted {
            None => store.peek(&digest)?,
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).chain([ID]).collect();
                store.peek_columns(&digest, &names)?
            }
        };
        let table = read_rows(plan, graph, reached, *key, table);
        loaded.push((*key, data, ids, table));
    }
    let several = |table: &RecordBatch| items::items_of(table).is_some();
    let (drawn, rest): (Vec<_>, Vec<_>) = loaded.into_iter().partition(|one| several(&one.3));
    let lists = drawn
        .iter()
        .filter_map(|one| Some((one.1, items::items_of(&one.3)?)));
    let (populations, placed) = items::populations(lists);
    let tables = drawn.into_iter().zip(placed);
    let tables = tables.map(|((key, _, ids, table), (population, places))| {
        let table = ItemTable::new(table, places, population);
        (key, if ids { table } else { table.without_ids() })
    });
    let rest = rest.into_iter().map(|one| (one.0, one.3));
    Ok((tables.collect(), populations, rest.collect()))
}

/// The rows of a table that its only reader looks at: a trace has many that a query leaves out, and would be copied for
/// every draw.
fn read_rows(
    plan: &Plan<'_>,
    graph: &Graph,
    reached: &Reached,
    key: Key,
    table: RecordBatch,
) -> RecordBatch {
    let reads = |n: &&usize| {
        graph[*n]
            .iter()
            .any(|(_, input)| input.keys().any(|k| k == key))
    };
    let mut readers = reached.nodes.iter().filter(reads);
    let (Some(n), None) = (readers.next(), readers.next()) else {
        return table;
    };
    let query = plan.instances[*n]
        .params
        .get("query")
        .and_then(Value::as_text);
    let (Some(filter), [(port, _)]) = (query.and_then(row_filter), &graph[n][..]) else {
        return table;
    };
    if reached.targets.contains(&key) {
        return table;
    }
    // A filter by an axis fails, since its column comes later: then all rows stay.
    let tables = [(port.clone(), table.clone())].into();
    let rows = stages::sql::query_here(tables, &filter, || false);
    let rows = rows.ok().and_then(|rows| store::canonical(&rows).ok());
    let same = |rows: &RecordBatch| rows.schema().fields() == table.schema().fields();
    rows.filter(same).unwrap_or(table)
}

/// The columns that the readers of a table want; none for all.
fn wanted(
    plan: &Plan<'_>,
    graph: &Graph,
    shorter: &BTreeMap<usize, Params>,
    reached: &Reached,
    key: Key,
) -> Option<BTreeSet<String>> {
    if reached.targets.contains(&key) {
        return None;
    }
    let mut all = BTreeSet::new();
    for n in &reached.nodes {
        let role = plan.decl(*n).kind.role();
        let params = shorter.get(n).unwrap_or(&plan.instances[*n].params);
        let by = graph[n].iter();
        for (port, _) in by.filter(|(_, input)| input.keys().any(|k| k == key)) {
            all.extend(columns_read(role, params, port)?);
        }
    }
    Some(all)
}

impl Prepared<'_> {
    /// Finds which stages change with what.
    fn classify(&mut self, reached: &Reached, stored: &Stored) {
        let is_item: BTreeSet<Key> = self.items.iter().map(|(key, _)| *key).collect();
        let seeded = &self.seeded;
        let mut flags: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
        for n in &reached.nodes {
            let inputs = &self.graph[n];
            let flag = |key: Key| flags.get(&key.0).copied().unwrap_or_default();
            let by_items = |key: Key| is_item.contains(&key) || flag(key).0;
            let mut keys = inputs.iter().flat_map(|(_, input)| input.keys());
            let seeds_behind = keys.any(|key| flag(key).1);
            let mut keys = inputs.iter().flat_map(|(_, input)| input.keys());
            let items_behind = keys.any(by_items);
            let behind = |port: &str, values: &AxisTexts| {
                let (_, input) = inputs.iter().find(|(name, _)| name == port)?;
                let keys = keys_behind(input, values);
                Some(Behind {
                    representatives: representatives(&self.graph, stored, input, values),
                    seeded: keys.iter().any(|key| seeded[key.0]),
                    items: keys.iter().any(|key| by_items(*key)),
                })
            };
            // A term is added once: an evaluation of evaluations has it from those.
            let own = self.plan.decl(*n).kind.role() == Role::Results && !seeds_behind;
            let table = self.fixed.get(&(*n, 0)).filter(|_| own);
            let params = self.params(*n);
            let cells = table.and_then(|table| ResultCells::read(table, params, behind));
            let binomial = cells.as_ref().is_some_and(ResultCells::any_binomial);
            let found = (items_behind || binomial, seeds_behind || cells.is_some());
            self.results.extend(cells.map(|cells| (*n, cells)));
            if found != (false, false) {
                flags.insert(*n, found);
            }
        }
        let nodes = flags
            .into_iter()
            .map(|(instance, (by_items, by_seeds))| Node {
                instance,
                by_items,
                by_seeds,
            });
        self.nodes = nodes.collect();
    }

    /// The parameters that an instance is recomputed with.
    pub(super) fn params(&self, n: usize) -> &Params {
        self.shorter
            .get(&n)
            .unwrap_or(&self.plan.instances[n].params)
    }

    /// Whether another seed might have given another output.
    pub fn is_seeded(&self, source: Source) -> bool {
        self.seeded[source.instance]
    }

    /// Whether draws vary an output with the seeds.
    pub fn has_seed_term(&self, source: Source) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| node.instance == source.instance && node.by_seeds)
    }

    /// Whether anything varies with the items.
    pub fn vary_items(&self) -> bool {
        self.nodes.iter().any(|node| node.by_items) || !self.items.is_empty()
    }

    /// Whether anything varies with the seeds.
    pub fn vary_seeds(&self) -> bool {
        self.results.values().any(ResultCells::vary)
    }
}
