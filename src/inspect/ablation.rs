//! An ablation: each number of an evaluation, for the base and for each variant, with the difference to the base.
//! Differences are of draws that both share, so items and seeds are paired. Knows nothing of the terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages::tables::results::{COL, ROW, SEED, TABLE, VALUE};
use stages::{Failure, Role};
use store::{Digest, Store};

use super::draws::{Prepared, outline, prepare};
use super::kept;
use super::status::InstanceStatus;
use super::stored::Stored;
use crate::plan::{Plan, Source, reach};
use crate::results::columns;
use crate::results::degenerate;
use crate::results::statistics::{Interval, Method, holm, mean, percentile_interval};

/// An evaluation at every variant of an ablation.
pub struct Variants {
    /// The stage.
    pub stage: String,
    /// The axis.
    pub axis: String,
    /// The position of the base.
    pub base: usize,
    /// The names of the variants, the base among them.
    pub names: Vec<String>,
    /// The instance of each variant.
    pub instances: Vec<usize>,
}

impl Variants {
    /// The results of each variant.
    fn sources(&self) -> Vec<Source> {
        let source = |instance: &usize| Source {
            instance: *instance,
            output: 0,
        };
        self.instances.iter().map(source).collect()
    }
}

/// What decides an ablation's numbers.
fn key(outline: &Digest, variants: &Variants, draws: Option<u64>) -> Digest {
    let Variants {
        stage, axis, names, ..
    } = variants;
    Digest::of(format!("ablation/2 {outline} {stage} {axis} {names:?} {draws:?}").as_bytes())
}

/// The fewest draws, and the most that are made unless somebody asks for more.
const DRAWS: [u64; 2] = [1_000, 20_000];
/// For each difference: a probability is at least 2 / draws, and Holm's method multiplies the smallest by the number
/// of differences, so with fewer than 40 no mark could appear.
const DRAWS_FOR_EACH: u64 = 50;

/// How many draws this number of differences needs.
fn enough_draws(differences: usize) -> u64 {
    let [least, most] = DRAWS;
    (DRAWS_FOR_EACH * differences as u64).clamp(least, most)
}

/// The comparison of the variants as it was made before; none if it was not, or something has not been run.
pub fn compared_before(
    plan: &Plan<'_>,
    store: &Store,
    stored: &Stored,
    variants: &Variants,
    draws: Option<u64>,
) -> Option<Ablation> {
    let sources = variants.sources();
    let made = |source: &Source| stored.outputs[source.instance].is_some();
    sources.iter().all(made).then_some(())?;
    let outline = outline(plan, store, stored, &sources, &|_| None);
    kept::find(store.root(), &key(&outline.digest, variants, draws))
}

/// The evaluations that vary with ablations, other axes at their base or first value.
pub fn evaluations(plan: &Plan<'_>) -> Vec<Variants> {
    let axes = &plan.pipeline.axes;
    let mut found = Vec::new();
    for (stage, decl) in plan.pipeline.stages.iter().enumerate() {
        if decl.kind.role() != Role::Results || decl.picks {
            continue;
        }
        let instances = plan.of_stage[stage].clone();
        for (n, axis) in axes.iter().enumerate() {
            let Some(base) = axis.base() else { continue };
            let of = |value: usize| {
                instances.clone().find(|instance| {
                    let point = &plan.instances[*instance].point;
                    let at = |(other, at): &(usize, usize)| match *other == n {
                        true => *at == value,
                        false => *at == axes[*other].base().unwrap_or(0),
                    };
                    point.iter().any(|(other, _)| *other == n) && point.iter().all(at)
                })
            };
            let values = (0..axis.values.len()).filter_map(|value| Some((value, of(value)?)));
            let (positions, at): (Vec<usize>, Vec<usize>) = values.unzip();
            let Some(base) = positions.iter().position(|value| *value == base) else {
                continue;
            };
            let name = |value: &usize| axis.values[*value].as_text().unwrap_or_default().to_owned();
            found.push(Variants {
                stage: decl.name.clone(),
                axis: axis.name.clone(),
                base,
                names: positions.iter().map(name).collect(),
                instances: at,
            });
        }
    }
    found
}

/// A number: its table, row and column.
pub type CellName = [String; 3];

/// An ablation in numbers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ablation {
    /// The evaluation.
    pub stage: String,
    /// The axis.
    pub axis: String,
    /// The variants, the base first.
    pub variants: Vec<Variant>,
    /// The numbers that differ between variants.
    pub numbers: Vec<Number>,
    /// How many draws the intervals rest on.
    pub draws: u64,
    /// What the draws vary.
    pub over: String,
}

/// A variant as a whole.
#[derive(Debug, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Whether it has the same keys as the base: the settings are what they were.
    pub same_as_base: bool,
    /// The stages that were executed for it and not for the base.
    pub ran: Vec<String>,
    /// What those executions took together.
    pub seconds: f64,
    /// What is odd about it.
    pub notes: Vec<String>,
}

/// A number for each variant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Number {
    /// Which table.
    pub table: String,
    /// Which row.
    pub row: String,
    /// Which column.
    pub col: String,
    /// For each variant, the base first.
    pub values: Vec<Outcome>,
}

/// The number of one variant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The mean over seeds.
    pub mean: Option<f64>,
    /// For each seed, in order.
    pub of_seeds: Vec<f64>,
    /// The mean less that of the base.
    pub difference: Option<f64>,
    /// Its 95% interval.
    pub interval: Option<Interval>,
    /// The probability of a difference as large by chance, adjusted by Holm's method for all differences here.
    pub p: Option<f64>,
}

/// Means by cell, and the numbers of the seeds.
type Means = BTreeMap<CellName, Vec<f64>>;

/// Compares the variants, by as many draws as their differences need if no number is given. `progress` is told how
/// many draws are done, and of how many.
pub fn compare(
    plan: &Plan<'_>,
    store: &Store,
    stored: &Stored,
    statuses: &[InstanceStatus],
    variants: &Variants,
    draws: Option<u64>,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Ablation, store::Error> {
    let sources = variants.sources();
    let outline = outline(plan, store, stored, &sources, &|_| None);
    let key = key(&outline.digest, variants, draws);
    if let Some(known) = kept::find(store.root(), &key) {
        return Ok(known);
    }
    let prepared = prepare(outline, store, stored)?;
    let tables = sources
        .iter()
        .map(|source| read(&prepared.table(&Default::default(), *source)));
    let tables: Vec<Means> = tables.collect();
    let (items, seeds) = (prepared.vary_items(), prepared.vary_seeds());
    let (over, method) = match (items, seeds) {
        (true, true) => ("items and seeds", Method::Draws),
        (true, false) => ("items", Method::DrawnItems),
        _ => ("seeds", Method::DrawnSeeds),
    };
    let known = numbers(variants, &tables, &[], method);
    let differences = known.iter().flat_map(|number| &number.values);
    let differences = differences.filter(|value| value.difference.is_some());
    let draws = match items || seeds {
        true => draws.unwrap_or_else(|| enough_draws(differences.count())),
        false => 0,
    };
    let done = std::sync::atomic::AtomicU64::new(0);
    let drawn: Vec<Option<Vec<Means>>> = (0..draws)
        .into_par_iter()
        .map(|draw| {
            let found = one_draw(&prepared, &sources, draw).ok();
            let made = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            progress(made, draws);
            found
        })
        .collect();
    let drawn: Vec<Vec<Means>> = drawn.into_iter().flatten().collect();
    let mut numbers = numbers(variants, &tables, &drawn, method);
    adjust(&mut numbers);
    let order = in_order(variants);
    let each = order
        .iter()
        .map(|v| about(plan, store, statuses, variants, *v));
    let ablation = Ablation {
        stage: variants.stage.clone(),
        axis: variants.axis.clone(),
        variants: each.collect::<Result<_, _>>()?,
        numbers,
        draws,
        over: over.to_owned(),
    };
    Ok(kept::keep(store.root(), &key, &ablation))
}

/// The base, then the others in the order of the file.
fn in_order(variants: &Variants) -> Vec<usize> {
    let others = (0..variants.names.len()).filter(|n| *n != variants.base);
    std::iter::once(variants.base).chain(others).collect()
}

/// The results of all variants in one draw of items and seeds.
fn one_draw(prepared: &Prepared<'_>, sources: &[Source], draw: u64) -> Result<Vec<Means>, Failure> {
    let items = prepared.items(draw)?;
    let tables = prepared.seeds(draw, &items)?;
    let each = sources.iter();
    Ok(each
        .map(|source| read(&prepared.table(&tables, *source)))
        .collect())
}

/// The numbers of a table of results, by cell, a number for each seed.
fn read(table: &RecordBatch) -> Means {
    let names = [TABLE, ROW, COL].map(|name| columns::texts(table, name));
    let ([Some(tables), Some(rows), Some(cols)], Some(values)) =
        (names, columns::numbers(table, VALUE))
    else {
        return Means::new();
    };
    let seeds = columns::wholes(table, SEED);
    let mut found: BTreeMap<CellName, BTreeMap<Option<i64>, f64>> = BTreeMap::new();
    for line in 0..table.num_rows() {
        let Some(value) = values[line].filter(|value| value.is_finite()) else {
            continue;
        };
        let cell = [&tables[line], &rows[line], &cols[line]].map(Clone::clone);
        let seed = seeds.as_ref().and_then(|seeds| seeds[line]);
        found.entry(cell).or_default().insert(seed, value);
    }
    let each = found.into_iter();
    each.map(|(cell, of)| (cell, of.into_values().collect()))
        .collect()
}

/// The numbers that differ between some variant and the base.
fn numbers(
    variants: &Variants,
    tables: &[Means],
    drawn: &[Vec<Means>],
    method: Method,
) -> Vec<Number> {
    let order = in_order(variants);
    let base = &tables[variants.base];
    let mut found = Vec::new();
    for (cell, of_base) in base {
        let same = |n: &usize| tables[*n].get(cell) == Some(of_base);
        if order.iter().all(same) {
            continue;
        }
        let values = order.iter().map(|n| {
            let own = tables[*n].get(cell).cloned().unwrap_or_default();
            let (ours, theirs) = (mean(&own), mean(of_base));
            let is_base = *n == variants.base;
            let difference = ours.zip(theirs).map(|(a, b)| a - b).filter(|_| !is_base);
            let each = drawn.iter().filter_map(|draw| {
                let of = |n: usize| mean(draw[n].get(cell)?);
                Some(of(*n)? - of(variants.base)?)
            });
            let each: Vec<f64> = match difference {
                Some(_) => each.collect(),
                None => Vec::new(),
            };
            let varies = each.iter().any(|x| Some(*x) != difference);
            Outcome {
                mean: ours,
                of_seeds: own,
                difference,
                p: varies.then(|| by_chance(&each)),
                interval: match varies {
                    true => percentile_interval(each, method),
                    false => None,
                },
            }
        });
        let [table, row, col] = cell.clone();
        found.push(Number {
            table,
            row,
            col,
            values: values.collect(),
        });
    }
    found
}

/// Twice the share of draws on the rarer side of no difference, with one more draw on that side: never 0.
fn by_chance(drawn: &[f64]) -> f64 {
    let below = drawn.iter().filter(|x| **x <= 0.0).count();
    let above = drawn.iter().filter(|x| **x >= 0.0).count();
    (2.0 * (below.min(above) + 1) as f64 / (drawn.len() + 1) as f64).min(1.0)
}

/// Adjusts all probabilities together by Holm's method.
fn adjust(numbers: &mut [Number]) {
    let all = numbers.iter().flat_map(|number| &number.values);
    let all: Vec<f64> = all.filter_map(|value| value.p).collect();
    let mut adjusted = holm(&all).into_iter();
    let values = numbers.iter_mut().flat_map(|number| &mut number.values);
    for value in values.filter(|value| value.p.is_some()) {
        value.p = adjusted.next();
    }
}

/// What ran for a variant, what it cost, and what is odd about it.
fn about(
    plan: &Plan<'_>,
    store: &Store,
    statuses: &[InstanceStatus],
    variants: &Variants,
    n: usize,
) -> Result<Variant, store::Error> {
    let behind = |n: usize| {
        let mut wanted = vec![false; plan.instances.len()];
        wanted[variants.instances[n]] = true;
        reach(plan, &mut wanted);
        (0..wanted.len()).filter(move |at| wanted[*at])
    };
    let shared: BTreeSet<Digest> = behind(variants.base)
        .filter_map(|at| statuses[at].key())
        .collect();
    let mut executions = BTreeMap::new();
    for at in behind(n) {
        if let InstanceStatus::Cached { key, execution, .. } = &statuses[at]
            && !shared.contains(key)
        {
            executions.insert(*execution, plan.decl(at).name.clone());
        }
    }
    let mut cost = Duration::ZERO;
    for id in executions.keys() {
        cost += store.execution(*id)?.map_or(Duration::ZERO, |e| e.wall);
    }
    let same_as_base = n != variants.base && executions.is_empty();
    // What the base has too says nothing of the variant.
    let own = |status: &InstanceStatus| status.key().is_some_and(|key| !shared.contains(&key));
    let outputs: Vec<_> = statuses
        .iter()
        .map(|status| status.outputs().filter(|_| own(status)).map(<[_]>::to_vec))
        .collect();
    let mut notes = match n == variants.base || same_as_base {
        true => Vec::new(),
        false => degenerate::behind(
            plan,
            store,
            &outputs,
            std::iter::once(variants.instances[n]),
        ),
    };
    let of = |n: usize| statuses[variants.instances[n]].outputs();
    if n != variants.base && !same_as_base && of(n) == of(variants.base) {
        notes.push("equal to the base in every digit: the change had no effect".to_owned());
    }
    let mut ran: Vec<String> = Vec::new();
    for name in executions.into_values() {
        if !ran.contains(&name) {
            ran.push(name);
        }
    }
    Ok(Variant {
        name: variants.names[n].clone(),
        same_as_base,
        ran,
        seconds: cost.as_secs_f64(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_probability_can_be_marked_whatever_the_number_of_differences() {
        for differences in [1, 3, 26, 50] {
            let draws = enough_draws(differences) as f64;
            let least = 2.0 / (draws + 1.0) * differences as f64;
            assert!(least < 0.05, "{differences} differences: {least}");
        }
        assert_eq!(enough_draws(1), 1_000);
        assert_eq!(enough_draws(1_000_000), 20_000);
    }

    #[test]
    fn a_difference_that_all_draws_have_is_rarely_chance() {
        let drawn: Vec<f64> = (1..=999).map(f64::from).collect();
        assert!((by_chance(&drawn) - 0.002).abs() < 1e-12);
        assert_eq!(by_chance(&[-1.0, 1.0]), 1.0);
        assert_eq!(by_chance(&[0.0; 10]), 1.0);
    }
}
