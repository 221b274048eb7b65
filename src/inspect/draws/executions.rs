//! Which instances along the axis of seeds are executions of their own: those whose parts have other digests. A stage
//! that draws no random numbers is the same for every seed, and its copies count as one.

use std::collections::{BTreeMap, BTreeSet};

use store::{Digest, Store, Value};

use super::graph::{Graph, Input, Key, graph};
use crate::inspect::stored::Stored;
use crate::plan::{Plan, Source};
use stages::Role;

/// The axis whose values are seeds.
pub const SEED_AXIS: &str = "seed";

/// For each seed, the first seed that gives the same.
pub type Representatives = BTreeMap<i64, i64>;

/// The seeds that an input is collected over, each with its representative. Empty if it is collected over none.
pub fn representatives(
    graph: &Graph,
    digest: impl Fn(Key) -> Option<Digest>,
    input: &Input,
) -> Representatives {
    let mut parts: BTreeMap<i64, Vec<Option<Digest>>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    collect(graph, &digest, input, &mut parts, &mut seen);
    let mut first: BTreeMap<&[Option<Digest>], i64> = BTreeMap::new();
    let each = parts.iter();
    each.map(|(seed, parts)| (*seed, *first.entry(parts).or_insert(*seed)))
        .collect()
}

fn collect(
    graph: &Graph,
    digest: &impl Fn(Key) -> Option<Digest>,
    input: &Input,
    parts: &mut BTreeMap<i64, Vec<Option<Digest>>>,
    seen: &mut BTreeSet<usize>,
) {
    let axis = match input {
        Input::One(_) => None,
        Input::Collect { axes, .. } => axes.iter().position(|axis| axis == SEED_AXIS),
    };
    if let (Some(axis), Input::Collect { parts: all, .. }) = (axis, input) {
        for (_, values, key) in all {
            if let Value::Int(seed) = values[axis] {
                parts.entry(seed).or_default().push(digest(*key));
            }
        }
        return;
    }
    for key in input.keys() {
        if seen.insert(key.0) {
            for (_, input) in graph.get(&key.0).into_iter().flatten() {
                collect(graph, digest, input, parts, seen);
            }
        }
    }
}

/// For each port of an instance, the seeds that it is collected over, each with its representative.
pub fn executed_seeds_of(
    plan: &Plan<'_>,
    store: &Store,
    stored: &Stored,
    source: Source,
) -> BTreeMap<String, Representatives> {
    let targets = BTreeSet::from([(source.instance, source.output)]);
    let graph = graph(plan, store, stored, &targets);
    let digest = |key: Key| stored.outputs[key.0].as_ref()?.get(key.1).copied();
    let inputs = graph.get(&source.instance).into_iter().flatten();
    inputs
        .map(|(port, input)| (port.clone(), representatives(&graph, digest, input)))
        .collect()
}

/// For each instance, whether a stage that draws random numbers is behind it: another seed might have given
/// something else. Data is what it is.
pub fn seeded(plan: &Plan<'_>) -> Vec<bool> {
    let mut seeded = Vec::with_capacity(plan.instances.len());
    for (n, instance) in plan.instances.iter().enumerate() {
        let own = instance.seed.is_some() && plan.decl(n).kind.role() != Role::Data;
        let behind = || instance.sources().any(|source| seeded[source.instance]);
        let is = own || behind();
        seeded.push(is);
    }
    seeded
}
