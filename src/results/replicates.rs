//! Which seeds of a recorded run are executions of their own: those with other results, theirs or of what they read.
//! Copies of a stage that draws no random numbers count as one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stages::Role;
use store::Digest;

use super::recorded::{Read, Recorded};

/// The axis whose values are seeds.
const SEED_AXIS: &str = "seed";

/// The seeds that a port of a step is collected over, each with the first seed that gives the same. Empty if it is
/// collected over none.
///
/// `values`: those of axes that the number has; only parts with these are behind it.
pub fn representatives(
    recorded: &Recorded,
    step: usize,
    port: &str,
    values: &BTreeMap<String, String>,
) -> BTreeMap<i64, i64> {
    let mut parts: BTreeMap<i64, Vec<&Read>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    collect(recorded, step, Some(port), values, &mut parts, &mut seen);
    let mut first: BTreeMap<BTreeSet<Digest>, i64> = BTreeMap::new();
    let each = parts.into_iter();
    each.map(|(seed, parts)| (seed, *first.entry(behind(recorded, parts)).or_insert(seed)))
        .collect()
}

/// The results of steps and of the queries that they are, back to what these read first.
fn behind<'a>(recorded: &'a Recorded, mut open: Vec<&'a Read>) -> BTreeSet<Digest> {
    let mut seen = BTreeSet::new();
    let mut results = BTreeSet::new();
    while let Some(read) = open.pop() {
        results.insert(read.input.digest);
        let Some(n) = read.step.filter(|n| seen.insert(*n)) else {
            continue;
        };
        let step = &recorded.steps[n];
        results.extend(step.outputs().iter().map(|output| output.digest));
        if matches!(step.role(), Role::Query | Role::Results) {
            open.extend(&step.reads);
        }
    }
    results
}

fn collect<'a>(
    recorded: &'a Recorded,
    step: usize,
    port: Option<&str>,
    values: &BTreeMap<String, String>,
    parts: &mut BTreeMap<i64, Vec<&'a Read>>,
    seen: &mut BTreeSet<usize>,
) {
    let reads = recorded.steps[step].reads.iter();
    for read in reads.filter(|read| port.is_none_or(|port| read.input.port == port)) {
        let axes = read.input.axes.as_deref();
        match axes.map(seed_of) {
            Some(Some(seed)) => {
                if axes.is_none_or(|axes| is_behind(axes, values)) {
                    parts.entry(seed).or_default().push(read);
                }
            }
            _ => {
                if let Some(behind) = read.step.filter(|behind| seen.insert(*behind)) {
                    collect(recorded, behind, None, values, parts, seen);
                }
            }
        }
    }
}

/// Whether a part of a collected input has the values that are wanted of its axes.
fn is_behind(axes: &str, wanted: &BTreeMap<String, String>) -> bool {
    let parsed: Result<(Vec<String>, Vec<store::Value>), _> = serde_json::from_str(axes);
    let Ok((names, values)) = parsed else {
        return true;
    };
    names.iter().zip(values).all(|(name, value)| {
        let text = value.as_text().map_or(value.to_string(), str::to_owned);
        wanted.get(name).is_none_or(|wanted| *wanted == text)
    })
}

/// The seed of a part of a collected input, from its axes as they are recorded: `[["n","seed"],[3,1]]`.
fn seed_of(axes: &str) -> Option<i64> {
    let (names, values): (Vec<String>, Vec<Value>) = serde_json::from_str(axes).ok()?;
    let at = names.iter().position(|name| name == SEED_AXIS)?;
    let value = values.get(at)?;
    value.as_i64().or_else(|| value.get("int")?.as_i64())
}

#[cfg(test)]
mod tests {
    use super::seed_of;
    use store::Value;

    #[test]
    fn the_seed_is_read_as_it_is_recorded() {
        let names = ["n".to_owned(), "seed".to_owned()];
        let values = [Value::Float(0.5), Value::Int(7)];
        let recorded = serde_json::to_string(&(&names, &values)).unwrap();
        assert_eq!(seed_of(&recorded), Some(7), "{recorded}");
        assert_eq!(seed_of("[[\"n\"],[3]]"), None);
        assert_eq!(seed_of("nothing"), None);
    }
}
