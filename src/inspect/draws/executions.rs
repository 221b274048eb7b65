//! Which instances along the axis of seeds are executions of their own: those with other results, theirs or of what they
//! read. A stage that draws no random numbers is the same for every seed, and its copies count as one; networks that
//! agree on a number are several all the same.

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
    stored: &Stored,
    input: &Input,
    values: &AxisTexts,
) -> Representatives {
    let mut parts: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    collect(graph, input, values, &mut parts, &mut BTreeSet::new());
    let mut first: BTreeMap<BTreeSet<Digest>, i64> = BTreeMap::new();
    let each = parts.into_iter();
    each.map(|(seed, parts)| {
        let behind = behind(graph, stored, parts);
        (seed, *first.entry(behind).or_insert(seed))
    })
    .collect()
}

/// The results of instances and of the queries that they are, back to what these read first.
fn behind(graph: &Graph, stored: &Stored, mut open: Vec<usize>) -> BTreeSet<Digest> {
    let mut seen = BTreeSet::new();
    let mut results = BTreeSet::new();
    while let Some(n) = open.pop() {
        if seen.insert(n) {
            results.extend(stored.outputs[n].iter().flatten().copied());
            let inputs = graph.get(&n).into_iter().flatten();
            open.extend(inputs.flat_map(|(_, input)| input.keys()).map(|key| key.0));
        }
    }
    results
}

fn collect(
    graph: &Graph,
    input: &Input,
    wanted: &AxisTexts,
    parts: &mut BTreeMap<i64, Vec<usize>>,
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
                parts.entry(seed).or_default().push(key.0);
            }
        }
        return;
    }
    for key in input.keys() {
        if seen.insert(key.0) {
            for (_, input) in graph.get(&key.0).into_iter().flatten() {
                collect(graph, input, wanted, parts, seen);
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
    axes.iter()
        .zip(values)
        .all(|(axis, value)| wanted.get(axis).is_none_or(|text| is_text_of(text, value)))
}

/// Whether a text means a value: numbers are compared as numbers, because a label has `1` where the axis has `1.0`.
fn is_text_of(text: &str, value: &Value) -> bool {
    match value {
        Value::Int(n) => text.parse() == Ok(*n as f64),
        Value::Float(x) => text.parse() == Ok(*x),
        _ => value.as_text().map_or(value.to_string(), str::to_owned) == text,
    }
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
        let inputs = self.graph.get(&self.instance);
        let input = inputs.into_iter().flatten().find(|(name, _)| name == port);
        input.map_or_else(Representatives::new, |(_, input)| {
            representatives(&self.graph, self.stored, input, values)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_means_a_number_however_it_is_written() {
        let axes = ["penalty".to_owned()];
        let behind = |value: Value, text: &str| {
            let wanted = [("penalty".to_owned(), text.to_owned())].into();
            is_behind(&axes, &[value], &wanted)
        };
        assert!(behind(Value::Float(1.0), "1"));
        assert!(behind(Value::Float(0.001), "0.001"));
        assert!(behind(Value::Int(1), "1.0"));
        assert!(behind(Value::Text("1".to_owned()), "1"));
        assert!(behind(Value::Bool(true), "true"));
        assert!(!behind(Value::Float(1.0), "10"));
        assert!(!behind(Value::Text("1.0".to_owned()), "1"));
    }
}
