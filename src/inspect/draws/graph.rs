//! The part of a plan that draws are about: from some outputs back through queries and evaluations.

use std::collections::{BTreeMap, BTreeSet};

use stages::Role;
use stages::item_local::is_item_local;
use store::{Digest, Store, Value};

use super::items::ID;
use crate::inspect::stored::Stored;
use crate::plan::{Feed, Plan, Source};
use crate::resolve::{Chosen, Unreadable, resolve};

/// An output by instance and position.
pub type Key = (usize, usize);

/// Stages that can be recomputed, each with what its ports read.
pub type Graph = BTreeMap<usize, Vec<(String, Input)>>;

/// What a port reads.
#[derive(Debug)]
pub enum Input {
    /// One table.
    One(Key),
    /// Several tables as one.
    Collect {
        /// The columns that the axes become.
        axes: Vec<String>,
        /// Each table with its label and the values of its axes.
        parts: Vec<(String, Vec<Value>, Key)>,
    },
}

impl Input {
    /// Every output that it reads.
    pub fn keys(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self {
            Input::One(key) => Box::new(std::iter::once(*key)),
            Input::Collect { parts, .. } => Box::new(parts.iter().map(|(_, _, key)| *key)),
        }
    }

    /// The axes that it is collected over, and their values in each part.
    pub fn values(&self) -> Option<(&[String], Vec<&[Value]>)> {
        match self {
            Input::One(_) => None,
            Input::Collect { axes, parts } => {
                let values = parts.iter().map(|(_, values, _)| &values[..]);
                Some((axes, values.collect()))
            }
        }
    }
}

/// Queries and evaluations behind these outputs, as far as all that they read is stored.
pub fn graph(plan: &Plan<'_>, store: &Store, stored: &Stored, targets: &BTreeSet<Key>) -> Graph {
    let mut graph = Graph::new();
    let mut open: Vec<usize> = targets.iter().map(|key| key.0).collect();
    while let Some(n) = open.pop() {
        if graph.contains_key(&n) || !recomputed(plan, n) {
            continue;
        }
        if let Some(inputs) = inputs(plan, store, stored, n) {
            open.extend(
                inputs
                    .iter()
                    .flat_map(|(_, input)| input.keys())
                    .map(|key| key.0),
            );
            graph.insert(n, inputs);
        }
    }
    graph
}

/// Whether a stage is computed anew for each draw: queries are, and evaluations by cells. Other measures ask a model, or
/// compare items with each other, and are taken as they are stored.
fn recomputed(plan: &Plan<'_>, n: usize) -> bool {
    let measure = plan.instances[n].params.get("measure");
    let by_cells = measure
        .and_then(Value::as_text)
        .is_none_or(|it| it == "cells");
    match plan.decl(n).kind.role() {
        Role::Query => true,
        Role::Results => by_cells,
        _ => false,
    }
}

/// What the ports of an instance read; none if some of it is not stored.
fn inputs(
    plan: &Plan<'_>,
    store: &Store,
    stored: &Stored,
    n: usize,
) -> Option<Vec<(String, Input)>> {
    let instance = &plan.instances[n];
    let digest = |source: Source| stored.outputs[source.instance].as_ref()?.get(source.output);
    if !instance.sources().all(|source| digest(source).is_some()) {
        return None;
    }
    let made = |source| *digest(source).expect("looked at before");
    let read = |source| {
        let table = store.read(&made(source));
        table.map_err(|error| Unreadable { source, error })
    };
    let resolved = resolve(plan, n, made, read).ok()?;
    let key = |source: &Source| (source.instance, source.output);
    let ports = instance.wires.iter().zip(&resolved.feeds);
    let inputs = ports.map(|(wire, chosen)| {
        let input = match chosen {
            Chosen::One(source) => Input::One(key(source)),
            Chosen::Collect { axes, parts } => Input::Collect {
                axes: axes.clone(),
                parts: parts
                    .iter()
                    .map(|(values, at)| (plan.source_label(*at), values.clone(), key(at)))
                    .collect(),
            },
        };
        (wire.port.clone(), input)
    });
    Some(inputs.collect())
}

/// What lies behind some outputs, by what becomes of it in a draw.
pub struct Reached {
    /// The outputs.
    pub targets: BTreeSet<Key>,
    /// Stages that may have to be recomputed.
    pub nodes: BTreeSet<usize>,
    /// Tables of items that they read, each with the name of its data.
    pub items: BTreeMap<Key, String>,
    /// Other tables that they read, and their own outputs.
    pub tables: BTreeSet<Key>,
}

impl Reached {
    /// Goes back from the outputs, up to tables of items: those of an attack, and those that a query makes of the
    /// rows of one item at a time.
    pub fn new(
        plan: &Plan<'_>,
        graph: &Graph,
        targets: &BTreeSet<Key>,
        digest: impl Fn(Key) -> Option<Digest>,
    ) -> Reached {
        let data = item_tables(plan, graph, &digest);
        let mut reached = Reached {
            targets: targets.clone(),
            nodes: BTreeSet::new(),
            items: BTreeMap::new(),
            tables: BTreeSet::new(),
        };
        let mut open: Vec<Key> = targets.iter().copied().collect();
        while let Some(key) = open.pop() {
            let name = data
                .get(&key)
                .cloned()
                .or_else(|| of_attack(plan, key, &digest));
            if let Some(name) = name {
                reached.items.insert(key, name);
                continue;
            }
            reached.tables.insert(key);
            if let Some(inputs) = graph.get(&key.0)
                && reached.nodes.insert(key.0)
            {
                open.extend(inputs.iter().flat_map(|(_, input)| input.keys()));
            }
        }
        reached
    }
}

/// The outputs of queries that are tables of items, with the name of their data.
fn item_tables(
    plan: &Plan<'_>,
    graph: &Graph,
    digest: &impl Fn(Key) -> Option<Digest>,
) -> BTreeMap<Key, String> {
    let mut data: BTreeMap<Key, String> = BTreeMap::new();
    for (n, inputs) in graph {
        let query = plan.instances[*n]
            .params
            .get("query")
            .and_then(Value::as_text);
        let [(_, input)] = &inputs[..] else { continue };
        if !query.is_some_and(|query| is_item_local(query, ID)) {
            continue;
        }
        let name = |key: Key| {
            data.get(&key)
                .cloned()
                .or_else(|| of_attack(plan, key, digest))
        };
        let mut names = input.keys().map(name);
        let first = names.next().flatten();
        if let Some(first) = first.filter(|first| names.all(|name| name.as_ref() == Some(first))) {
            data.insert((*n, 0), first);
        }
    }
    data
}

/// The name of the data that an attack's output is about; none for outputs of other stages. Attacks share items if the
/// data sets behind their rows are the same.
fn of_attack(plan: &Plan<'_>, key: Key, digest: &impl Fn(Key) -> Option<Digest>) -> Option<String> {
    if plan.decl(key.0).kind.role() != Role::Attack {
        return None;
    }
    let (mut open, mut seen, mut names) = (vec![key.0], BTreeSet::new(), BTreeSet::new());
    while let Some(n) = open.pop() {
        if !seen.insert(n) {
            continue;
        }
        if plan.decl(n).kind.role() == Role::Data {
            names.extend(digest((n, 0)).map(|digest| digest.to_string()));
            continue;
        }
        // Rows, as far as a stage names them; what else it reads does not say which items there are.
        let wires = &plan.instances[n].wires;
        let rows: Vec<&Feed> = wires
            .iter()
            .filter(|w| w.port == "rows")
            .map(|w| &w.from)
            .collect();
        let all = || wires.iter().map(|wire| &wire.from).collect();
        let feeds: Vec<&Feed> = if rows.is_empty() { all() } else { rows };
        open.extend(
            feeds
                .iter()
                .flat_map(|feed| feed.sources())
                .map(|source| source.instance),
        );
    }
    Some(names.into_iter().collect::<Vec<_>>().join(" "))
}
