//! Draws: tables as they might have been. Equal on any number of threads, since every draw has its own random numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::record_batch::RecordBatch;
use nn::Stream;
use stages::{DataHome, Failure, Place, Role, Task, Usage, Watch};
use store::Value;

use super::graph::{Input, Key};
use super::items::{SEED, hash};
use super::prepare::Prepared;
use super::seeds::ResultCells;
use crate::plan::Source;
use crate::results::statistics::SeedDraw;

/// Tables that differ from those that are stored.
#[derive(Clone, Debug, Default)]
pub struct Tables(HashMap<Key, RecordBatch>);

impl Prepared<'_> {
    /// A draw of items alone.
    pub fn items(&self, draw: u64) -> Result<Tables, Failure> {
        let counts = self.populations.iter().map(|all| all.counts(draw));
        let counts: Vec<Vec<u32>> = counts.collect();
        let mut tables = Tables::default();
        for (key, items) in &self.items {
            let table = items.resampled(&counts[items.population]);
            tables.0.insert(*key, table);
        }
        let stream = Stream::new(SEED, "binomial").item(draw);
        for node in self.nodes.iter().filter(|node| node.by_items) {
            let n = node.instance;
            let read: BTreeSet<Key> = self.reads(n).collect();
            if read.iter().any(|key| tables.0.contains_key(key)) {
                self.run(n, &mut tables)?;
            }
            if let Some(cells) = self.results.get(&n).filter(|cells| cells.any_binomial()) {
                let own = stream.item(hash(&self.plan.instances[n].label));
                let drawn = cells.with_binomials(self.get(&tables, (n, 0)), own);
                tables.0.insert((n, 0), drawn);
            }
        }
        Ok(tables)
    }

    /// Adds the seeds' part of a draw to these tables.
    pub fn seeds(&self, draw: u64, tables: &Tables) -> Result<Tables, Failure> {
        let seeds = SeedDraw::new(Stream::new(SEED, "seeds").item(draw));
        self.with_results(tables, |cells, table| cells.with_seeds(table, &seeds))
    }

    /// What is stored, with the results of one seed only.
    pub fn of_seed(&self, seed: i64) -> Result<Tables, Failure> {
        let stored = Tables::default();
        self.with_results(&stored, |cells, table| cells.of_seed(table, seed))
    }

    /// What is stored, with results moved that have this number of executions.
    pub fn nudged(&self, executions: usize, by: f64) -> Result<Tables, Failure> {
        let stored = Tables::default();
        self.with_results(&stored, |cells, table| cells.nudged(table, executions, by))
    }

    /// The seeds of results that are executions of their own.
    pub fn executed_seeds(&self) -> BTreeSet<i64> {
        let each = self.results.values();
        each.flat_map(ResultCells::executed_seeds).collect()
    }

    /// How many executions results have that another seed might have changed, smallest first.
    pub fn executions(&self) -> BTreeSet<usize> {
        self.results
            .values()
            .flat_map(ResultCells::executions)
            .collect()
    }

    /// An output in these tables, or as it is stored.
    pub fn table(&self, tables: &Tables, source: Source) -> RecordBatch {
        self.get(tables, (source.instance, source.output)).clone()
    }

    /// Changes all results, and recomputes what reads them.
    fn with_results(
        &self,
        tables: &Tables,
        change: impl Fn(&ResultCells, &RecordBatch) -> RecordBatch,
    ) -> Result<Tables, Failure> {
        let mut tables = tables.clone();
        for node in self.nodes.iter().filter(|node| node.by_seeds) {
            match self.results.get(&node.instance) {
                Some(cells) => {
                    let key = (node.instance, 0);
                    let changed = change(cells, self.get(&tables, key));
                    tables.0.insert(key, changed);
                }
                None => self.run(node.instance, &mut tables)?,
            }
        }
        Ok(tables)
    }

    fn reads(&self, n: usize) -> impl Iterator<Item = Key> + '_ {
        self.graph[&n].iter().flat_map(|(_, input)| input.keys())
    }

    fn get<'t>(&'t self, tables: &'t Tables, key: Key) -> &'t RecordBatch {
        let item = || self.items.iter().find(|(other, _)| *other == key);
        let stored = || {
            self.fixed
                .get(&key)
                .or_else(|| item().map(|(_, items)| &items.table))
        };
        tables
            .0
            .get(&key)
            .or_else(stored)
            .expect("all that is read was loaded")
    }

    /// Recomputes a stage.
    fn run(&self, n: usize, tables: &mut Tables) -> Result<(), Failure> {
        let mut inputs = BTreeMap::new();
        for (port, input) in &self.graph[&n] {
            inputs.insert(port.clone(), self.input(tables, input)?);
        }
        let (instance, kind) = (&self.plan.instances[n], self.plan.decl(n).kind);
        if kind.role() == Role::Query {
            // In this process: the query has been run on tables of this size.
            let query = instance.params.get("query").and_then(Value::as_text);
            let rows = stages::sql::query_here(inputs, query.unwrap_or_default(), || false)?;
            tables.0.insert((n, 0), canonical(&rows)?);
            return Ok(());
        }
        let task = Task {
            inputs,
            params: self.params(n),
            seed: instance.seed.unwrap_or(0),
            files: BTreeMap::new(),
            data: &DataHome::nowhere(),
            place: &Place::default(),
            watch: &Unwatched,
        };
        let mut made = kind.run(&task)?;
        for (output, name) in instance.outputs.iter().enumerate() {
            if let Some(table) = made.remove(name) {
                tables.0.insert((n, output), canonical(&table)?);
            }
        }
        Ok(())
    }

    /// What a port receives.
    fn input(&self, tables: &Tables, input: &Input) -> Result<RecordBatch, Failure> {
        let Input::Collect { axes, parts } = input else {
            let mut keys = input.keys();
            return Ok(self.get(tables, keys.next().expect("one")).clone());
        };
        let axes: Vec<&str> = axes.iter().map(String::as_str).collect();
        let parts = parts.iter();
        let mut rows: Vec<_> = parts
            .map(|(label, values, key)| {
                (
                    label.clone(),
                    values.clone(),
                    self.get(tables, *key).clone(),
                )
            })
            .collect();
        only_common_columns(&mut rows);
        stages::collect(&axes, &rows)
    }
}

/// Leaves the columns that all parts have: tables of items were loaded with those that their own readers want.
fn only_common_columns(parts: &mut [(String, Vec<Value>, RecordBatch)]) {
    let Some((_, _, first)) = parts.first() else {
        return;
    };
    let names: Vec<String> = first
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let in_all = |name: &&String| {
        parts
            .iter()
            .all(|part| part.2.column_by_name(name).is_some())
    };
    let common: Vec<String> = names.iter().filter(in_all).cloned().collect();
    for (_, _, table) in parts {
        let schema = table.schema();
        let places: Vec<usize> = common
            .iter()
            .filter_map(|name| schema.index_of(name).ok())
            .collect();
        if places.len() != table.num_columns() {
            *table = table.project(&places).expect("its own columns");
        }
    }
}

fn canonical(table: &RecordBatch) -> Result<RecordBatch, Failure> {
    store::canonical(table).map_err(|error| Failure::new(error.to_string()))
}

/// Nobody looks at a stage in a draw.
struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}
    fn log(&self, _: &str) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}
