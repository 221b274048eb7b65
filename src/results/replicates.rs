//! Which seeds of a recorded run are executions of their own: those whose parts have other digests. Copies of a stage
//! that draws no random numbers count as one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use store::Digest;

use super::recorded::Recorded;

/// The axis whose values are seeds.
const SEED_AXIS: &str = "seed";

/// The seeds that a port of a step is collected over, each with the first seed that gives the same. Empty if it is
/// collected over none.
pub fn representatives(recorded: &Recorded, step: usize, port: &str) -> BTreeMap<i64, i64> {
    let mut parts: BTreeMap<i64, Vec<Digest>> = BTreeMap::new();
    collect(recorded, step, Some(port), &mut parts, &mut BTreeSet::new());
    let mut first: BTreeMap<&[Digest], i64> = BTreeMap::new();
    let each = parts.iter();
    each.map(|(seed, parts)| (*seed, *first.entry(parts).or_insert(*seed)))
        .collect()
}

fn collect(
    recorded: &Recorded,
    step: usize,
    port: Option<&str>,
    parts: &mut BTreeMap<i64, Vec<Digest>>,
    seen: &mut BTreeSet<usize>,
) {
    let reads = recorded.steps[step].reads.iter();
    for read in reads.filter(|read| port.is_none_or(|port| read.input.port == port)) {
        match read.input.axes.as_deref().map(seed_of) {
            Some(Some(seed)) => parts.entry(seed).or_default().push(read.input.digest),
            _ => {
                if let Some(behind) = read.step.filter(|behind| seen.insert(*behind)) {
                    collect(recorded, behind, None, parts, seen);
                }
            }
        }
    }
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
