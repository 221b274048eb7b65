//! From an instance whose inputs are made to its key. `plan`, `explain`, `show` and the
//! scheduler all ask here, so that none of them can disagree about what is cached.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use serde::Serialize;
use store::{Digest, InputUsed, Params, StageKey, Value};

use crate::config::Best;
use crate::exactly::Number;
use crate::plan::{Feed, Plan, Pointer, Source};
use stages::Failure;

/// An instance with its inputs known.
pub struct Resolved {
    /// What decides its bytes.
    pub key: StageKey,
    /// The digest of the key.
    pub digest: Digest,
    /// What each port reads, in the order of the wires, with choices made.
    pub feeds: Vec<Chosen>,
    /// The same for the provenance.
    pub inputs: Vec<InputUsed>,
}

/// What a port reads once `select` has chosen.
pub enum Chosen {
    /// One table.
    One(Source),
    /// Several tables as one, each with the values of its axes.
    Collect {
        /// The columns that the axes become.
        axes: Vec<String>,
        /// The tables.
        parts: Vec<(Vec<Value>, Source)>,
    },
}

impl Chosen {
    /// Every output that is read.
    pub fn sources(&self) -> Box<dyn Iterator<Item = Source> + '_> {
        match self {
            Chosen::One(source) => Box::new(std::iter::once(*source)),
            Chosen::Collect { parts, .. } => Box::new(parts.iter().map(|(_, source)| *source)),
        }
    }
}

/// The digest of a collected input: of its parts' digests, so that nothing need be read.
#[derive(Serialize)]
struct CollectKey<'a> {
    record: &'static str,
    axes: &'a [String],
    parts: Vec<(&'a [Value], Digest)>,
}

/// The digest of an input that collects these tables along these axes.
pub fn collected(axes: &[String], parts: Vec<(&[Value], Digest)>) -> Digest {
    let record = CollectKey {
        record: "collect/1",
        axes,
        parts,
    };
    let record = serde_json::to_string(&record).expect("plain values");
    Digest::of(record.as_bytes())
}

/// Computes the key of an instance. `made` gives the digest of an output that exists;
/// `read` its table, which only `select` needs.
pub fn resolve(
    plan: &Plan<'_>,
    instance: usize,
    made: impl Fn(Source) -> Digest,
    read: impl Fn(Source) -> Result<RecordBatch, Unreadable>,
) -> Result<Resolved, Unresolved> {
    let planned = &plan.instances[instance];
    let decl = plan.decl(instance);
    let best = bests(plan, instance, read)?;
    let mut feeds = Vec::with_capacity(planned.wires.len());
    let mut inputs = Vec::new();
    let mut digests = BTreeMap::new();
    for wire in &planned.wires {
        let mut used = |ordinal: usize, axes: Option<String>, source: Source| {
            let digest = made(source);
            inputs.push(InputUsed {
                port: wire.port.clone(),
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                axes,
                producer: plan.source_label(source),
                digest,
            });
            digest
        };
        let (feed, digest) = match &wire.from {
            Feed::One(pointer) => {
                let source = chosen(pointer, &best);
                (Chosen::One(source), used(0, None, source))
            }
            Feed::Collect { axes, parts } => {
                let all = &plan.pipeline.axes;
                let names: Vec<String> =
                    axes.iter().map(|axis| all[*axis].column.clone()).collect();
                let parts: Vec<(Vec<Value>, Source)> = parts
                    .iter()
                    .map(|(at, pointer)| {
                        let values = axes.iter().zip(at).map(|(a, v)| all[*a].values[*v].clone());
                        (values.collect(), chosen(pointer, &best))
                    })
                    .collect();
                let keyed = parts.iter().enumerate().map(|(n, (values, source))| {
                    let shown = serde_json::to_string(&(&names, values)).expect("plain values");
                    (values.as_slice(), used(n, Some(shown), *source))
                });
                let digest = collected(&names, keyed.collect());
                (Chosen::Collect { axes: names, parts }, digest)
            }
        };
        feeds.push(feed);
        digests.insert(wire.port.clone(), digest);
    }
    let files = planned.files.iter();
    let key = StageKey {
        record: StageKey::RECORD.to_owned(),
        kind: decl.kind.describe().kind.to_owned(),
        code: plan.code(instance).digest,
        params: keyed(&planned.params, decl.kind.limits()),
        seed: planned.seed,
        files: files
            .map(|(name, file)| (name.clone(), file.digest))
            .collect(),
        executable: planned
            .files
            .iter()
            .filter(|(_, file)| file.executable)
            .map(|(name, _)| name.clone())
            .collect(),
        installed: planned.installed.as_ref().clone(),
        inputs: digests,
    };
    Ok(Resolved {
        digest: key.digest(),
        key,
        feeds,
        inputs,
    })
}

/// The best candidate of every selection that an instance depends on.
fn bests(
    plan: &Plan<'_>,
    instance: usize,
    read: impl Fn(Source) -> Result<RecordBatch, Unreadable>,
) -> Result<BTreeMap<usize, usize>, Unresolved> {
    let wires = plan.instances[instance].wires.iter();
    let pointers = wires.flat_map(|wire| wire.from.pointers());
    let mut best = BTreeMap::new();
    for n in pointers.flat_map(Pointer::selections) {
        if best.contains_key(&n) {
            continue;
        }
        let selection = &plan.selections[n];
        let mut metrics = Vec::with_capacity(selection.metrics.len());
        for source in &selection.metrics {
            let table = read(*source).map_err(Unresolved::Unreadable)?;
            let label = plan.source_label(*source);
            metrics.push(metric(&table, &selection.column, &label).map_err(Unresolved::Metric)?);
        }
        let chosen = choose(&metrics, selection.best).ok_or_else(|| {
            let (column, name) = (&selection.column, &selection.of);
            Unresolved::Metric(Failure::new(format!(
                "`{column}` is not a number in any instance of `{name}`: none can be selected"
            )))
        })?;
        best.insert(n, chosen);
    }
    Ok(best)
}

/// The output that a pointer means, once the selections are made.
fn chosen(pointer: &Pointer, best: &BTreeMap<usize, usize>) -> Source {
    match pointer {
        Pointer::Made(source) => *source,
        Pointer::Best { selection, of } => chosen(&of[best[selection]], best),
    }
}

/// The parameters that decide the result: not those that only limit what it may take.
fn keyed(params: &Params, limits: &[&str]) -> Params {
    let mut params = params.clone();
    params.retain(|name, _| !limits.contains(&name.as_str()));
    params
}

/// Why an instance has no key.
#[derive(Debug)]
pub enum Unresolved {
    /// `select` found a metric that it cannot use.
    Metric(Failure),
    /// A metric's table could not be read.
    Unreadable(Unreadable),
}

/// A table that could not be read from the store.
#[derive(Debug)]
pub struct Unreadable {
    /// Which output.
    pub source: Source,
    /// Why.
    pub error: store::Error,
}

/// The single number in a column of a table with a single row; none if it is null.
fn metric(table: &RecordBatch, column: &str, label: &str) -> Result<Option<Number>, Failure> {
    let Some(array) = table.column_by_name(column) else {
        let fields = table.schema();
        let names: Vec<_> = fields.fields().iter().map(|f| f.name().as_str()).collect();
        let hint = crate::diagnostic::nearest(column, names.iter().copied());
        let failure = Failure::new(format!(
            "the metric table `{label}` has no column `{column}`: it has {}",
            names.join(", ")
        ));
        return Err(match hint {
            Some(hint) => failure.help(hint),
            None => failure,
        });
    };
    if table.num_rows() != 1 {
        return Err(Failure::new(format!(
            "the metric table `{label}` has {} rows, but `select` needs one per instance",
            table.num_rows()
        )));
    }
    Number::read(array, 0)
        .map_err(|kind| Failure::new(format!("`{column}` of `{label}` is {kind}, not a number")))
}

/// The position of the best number; the first of equals; a null and a NaN never win.
fn choose(metrics: &[Option<Number>], best: Best) -> Option<usize> {
    let mut chosen: Option<(usize, Number)> = None;
    for (n, metric) in metrics.iter().enumerate() {
        let Some(metric) = metric.filter(|metric| !metric.is_nan()) else {
            continue;
        };
        let order = chosen.map(|(_, old)| metric.compare(old));
        let better = match best {
            Best::Max => order.is_none_or(|order| order == Some(Ordering::Greater)),
            Best::Min => order.is_none_or(|order| order == Some(Ordering::Less)),
        };
        if better {
            chosen = Some((n, metric));
        }
    }
    chosen.map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_wins_and_nan_never() {
        let floats = |all: &[f64]| {
            all.iter()
                .map(|x| Some(Number::Float(*x)))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            choose(&floats(&[f64::NAN, 1.0, 3.0, 3.0]), Best::Max),
            Some(2)
        );
        assert_eq!(choose(&floats(&[2.0, f64::NAN, -1.0]), Best::Min), Some(2));
        assert_eq!(choose(&floats(&[f64::NAN]), Best::Max), None);
        assert_eq!(choose(&[None, Some(Number::Whole(-1))], Best::Max), Some(1));
    }

    #[test]
    fn whole_numbers_that_one_float_stands_for_are_told_apart() {
        let large = 1_i128 << 53;
        let metrics = [large, large + 1].map(|n| Some(Number::Whole(n)));
        assert_eq!(choose(&metrics, Best::Max), Some(1));
        let metrics = [large + 1, large].map(|n| Some(Number::Whole(n)));
        assert_eq!(choose(&metrics, Best::Min), Some(1));
    }
}
