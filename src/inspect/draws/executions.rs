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

/// The values that axes have for a number, as texts: only parts with these are behind it.
pub type AxisTexts = BTreeMap<String, String>;

/// The seeds that an input is collected over, each with its representative, as far as a number with these values of
/// axes is concerned. Empty if it is collected over none.
pub fn representatives(
    graph: &Graph,
    digest: impl Fn(Key) -> Option<Digest>,
    input: &Input,
    values: &AxisTexts,
) -> Representatives {
    let mut parts: BTreeMap<i64, Vec<Option<Digest>>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    collect(graph, &digest, input, values, &mut parts, &mut seen);
    let mut first: BTreeMap<&[Option<Digest>], i64> = BTreeMap::new();
    let each = parts.iter();
    each.map(|(seed, parts)| (*seed, *first.entry(parts).or_insert(*seed)))
        .collect()
}

fn collect(
    graph: &Graph,
    digest: &impl Fn(Key) -> Option<Digest>,
    input: &Input,
    wanted: &AxisTexts,
    parts: &mut BTreeMap<i64, Vec<Option<Digest>>>,
    seen: &mut BTreeSet<usize>,
) {
    let axis = match input {
        Input::One(_) => None,
        Input::Collect { axes, .. } => axes.iter().position(|axis| axis == SEED_AXIS),
    };
    if let (Some(axis), Input::Collect { axes, parts: all }) = (axis, input) {
        for (_, values, key) in all {
            if let Value::Int(seed) = values[axis]
                && is_behind(axes, values, wanted)
            {
                parts.entry(seed).or_default().push(digest(*key));
            }
        }
        return;
    }
    for key in input.keys() {
        if seen.insert(key.0) {
            for (_, input) in graph.get(&key.0).into_iter().flatten() {
                collect(graph, digest, input, wanted, parts, seen);
            }
        }
    }
}

/// The outputs of an input that are behind a number with these values of axes.
pub fn keys_behind(input: &Input, wanted: &AxisTexts) -> Vec<Key> {
    match input {
        Input::One(_) => input.keys().collect(),
        Input::Collect { axes, parts } => {
            let own = parts
                .iter()
                .filter(|(_, values, _)| is_behind(axes, values, wanted));
            own.map(|(_, _, key)| *key).collect()
        }
    }
}

/// Whether a part has the values that are wanted of its axes.
fn is_behind(axes: &[String], values: &[Value], wanted: &AxisTexts) -> bool {
    axes.iter().zip(values).all(|(axis, value)| {
        let text = value.as_text().map_or(value.to_string(), str::to_owned);
        wanted.get(axis).is_none_or(|wanted| *wanted == text)
    })
}

/// Tells the seeds behind the numbers of an evaluation.
pub struct ExecutedSeeds<'a> {
    graph: Graph,
    stored: &'a Stored,
    instance: usize,
}

impl<'a> ExecutedSeeds<'a> {
    /// Of the evaluation that made an output.
    pub fn of(plan: &Plan<'_>, store: &Store, stored: &'a Stored, source: Source) -> Self {
        let targets = BTreeSet::from([(source.instance, source.output)]);
        ExecutedSeeds {
            graph: graph(plan, store, stored, &targets),
            stored,
            instance: source.instance,
        }
    }

    /// The seeds that a port is collected over, each with its representative, for a number with these values of axes.
    pub fn behind(&self, port: &str, values: &AxisTexts) -> Representatives {
        let digest = |key: Key| self.stored.outputs[key.0].as_ref()?.get(key.1).copied();
        let inputs = self.graph.get(&self.instance);
        let input = inputs.into_iter().flatten().find(|(name, _)| name == port);
        input.map_or_else(Representatives::new, |(_, input)| {
            representatives(&self.graph, digest, input, values)
        })
    }
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
