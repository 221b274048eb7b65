//! Asks the claims' queries of the results as they might have been.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::record_batch::RecordBatch;
use rayon::prelude::*;

use super::evidence::{Evidence, Share};
use super::numbers::{Holds, take_apart};
use super::{Claim, Claims};
use crate::inspect::draws::{Prepared, Tables};
use crate::plan::Plan;
use crate::results::statistics::{Method, percentile_interval};
use crate::results::table;

/// Draws in which items and seeds are also varied one without the other, to tell which matters more.
const APART: u64 = 200;

/// What a query says of some tables.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    holds: Option<bool>,
    numbers: Vec<(String, Option<f64>)>,
}

/// What a draw says of each claim.
struct Drawn {
    /// With items and seeds.
    both: Vec<Answer>,
    /// With one of them, in some draws.
    apart: Option<Apart>,
    /// Why it could not be computed.
    failure: Option<String>,
}

/// What a draw says of each claim with items alone, and with seeds alone.
struct Apart {
    items: Vec<Answer>,
    seeds: Vec<Answer>,
}

/// The evidence for some claims. `done` is told how many draws are.
pub fn evidence(
    plan: &Plan<'_>,
    claims: &Claims,
    asked: &[&Claim],
    prepared: &Prepared<'_>,
    draws: u64,
    done: impl Fn(usize) + Sync,
) -> Vec<Evidence> {
    let ask = |tables: &Tables| -> Vec<Answer> {
        let each = asked.iter();
        each.map(|claim| answer(plan, claims, claim, prepared, tables))
            .collect()
    };
    let stored = ask(&Tables::default());
    let finished = AtomicUsize::new(0);
    let drawn: Vec<Drawn> = (0..draws)
        .into_par_iter()
        .map(|draw| {
            let drawn = one(prepared, draw, &ask, &stored);
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
            drawn
        })
        .collect();
    let executions = executions(prepared, &ask, &stored);
    let of_seeds = of_seeds(prepared, &ask, asked.len());
    let each = asked.iter().enumerate();
    each.map(|(n, claim)| Evidence {
        executions: executions[n],
        of_seeds: of_seeds[n].filter(|_| executions[n].is_some_and(|k| k > 1)),
        unknown: unknown(claims, claim, prepared),
        failure: drawn.iter().find_map(|drawn| drawn.failure.clone()),
        ..of_draws(n, &stored[n], &drawn)
    })
    .collect()
}

/// What the draws say of one claim.
fn of_draws(n: usize, stored: &Answer, drawn: &[Drawn]) -> Evidence {
    let apart = || drawn.iter().filter_map(|drawn| drawn.apart.as_ref());
    let share = |answers: Vec<&Answer>| {
        let varies = answers.iter().any(|answer| *answer != stored);
        varies.then(|| Share::of(answers.iter().map(|answer| answer.holds)))
    };
    let items = share(apart().map(|apart| &apart.items[n]).collect());
    let seeds = share(apart().map(|apart| &apart.seeds[n]).collect());
    let method = match (&items, &seeds) {
        (Some(_), Some(_)) => Method::Draws,
        (Some(_), None) => Method::DrawnItems,
        (None, Some(_)) => Method::DrawnSeeds,
        (None, None) => return Evidence::default(),
    };
    let both: Vec<&Answer> = drawn.iter().map(|drawn| &drawn.both[n]).collect();
    Evidence {
        draws: Share::of(both.iter().map(|answer| answer.holds)),
        intervals: intervals(stored, &both, method),
        items,
        seeds,
        ..Evidence::default()
    }
}

/// One draw. What cannot vary is not computed again.
fn one(
    prepared: &Prepared<'_>,
    draw: u64,
    ask: &impl Fn(&Tables) -> Vec<Answer>,
    stored: &[Answer],
) -> Drawn {
    let drawn = || -> Result<Drawn, stages::Failure> {
        let nothing = Tables::default();
        let apart = draw < APART;
        let (both, items, seeds) = match (prepared.vary_items(), prepared.vary_seeds()) {
            (true, true) => {
                let items = prepared.items(draw)?;
                let both = ask(&prepared.seeds(draw, &items)?);
                let alone = || -> Result<_, stages::Failure> {
                    Ok((ask(&items), ask(&prepared.seeds(draw, &nothing)?)))
                };
                let (items, seeds) = apart.then(alone).transpose()?.unzip();
                (both, items, seeds)
            }
            (true, false) => {
                let items = ask(&prepared.items(draw)?);
                (items.clone(), Some(items), Some(stored.to_vec()))
            }
            (false, _) => {
                let seeds = ask(&prepared.seeds(draw, &nothing)?);
                (seeds.clone(), Some(stored.to_vec()), Some(seeds))
            }
        };
        Ok(Drawn {
            both,
            apart: items
                .zip(seeds)
                .filter(|_| apart)
                .map(|(items, seeds)| Apart { items, seeds }),
            failure: None,
        })
    };
    drawn().unwrap_or_else(|failure| Drawn {
        both: vec![Answer::NONE; stored.len()],
        apart: None,
        failure: Some(failure.message),
    })
}

impl Answer {
    const NONE: Answer = Answer {
        holds: None,
        numbers: Vec::new(),
    };
}

/// What a claim's query says of these tables. What it cannot say of a draw, it says of none.
fn answer(
    plan: &Plan<'_>,
    claims: &Claims,
    claim: &Claim,
    prepared: &Prepared<'_>,
    tables: &Tables,
) -> Answer {
    let mut inputs: BTreeMap<String, RecordBatch> = BTreeMap::new();
    for at in &claim.reads {
        let named = &claims.tables[*at];
        let parts = named.outputs.iter();
        let parts = parts.map(|source| (*source, prepared.table(tables, *source)));
        match table::together(plan, parts.collect()) {
            Ok(table) => inputs.insert(named.name.clone(), table),
            Err(_) => return Answer::NONE,
        };
    }
    let row = stages::sql::query_here(inputs, &claim.query, || false);
    let Some(row) = row.ok().filter(|row| row.num_rows() == 1) else {
        return Answer::NONE;
    };
    let (holds, numbers) = take_apart(&row);
    let is_nan = numbers.iter().any(|number| number.is_nan);
    Answer {
        holds: match holds {
            Holds::Said(said) if !is_nan => said,
            _ => None,
        },
        numbers: numbers
            .into_iter()
            .map(|number| (number.name, number.value.as_f64()))
            .collect(),
    }
}

/// The intervals of a claim's numbers: of those that nearly every draw has.
fn intervals(
    stored: &Answer,
    drawn: &[&Answer],
    method: Method,
) -> BTreeMap<String, crate::results::statistics::Interval> {
    let mut intervals = BTreeMap::new();
    for (n, (name, value)) in stored.numbers.iter().enumerate() {
        let each = drawn.iter().filter_map(|answer| answer.numbers.get(n)?.1);
        let each: Vec<f64> = each.collect();
        let varies = each.iter().any(|x| Some(*x) != *value);
        if value.is_some() && varies && each.len() * 100 >= drawn.len() * 95 {
            let interval = percentile_interval(each, method);
            intervals.extend(interval.map(|interval| (name.clone(), interval)));
        }
    }
    intervals
}

/// For each claim, the fewest executions of any number that changes what it says.
fn executions(
    prepared: &Prepared<'_>,
    ask: &impl Fn(&Tables) -> Vec<Answer>,
    stored: &[Answer],
) -> Vec<Option<usize>> {
    let mut found = vec![None; stored.len()];
    for executions in prepared.executions() {
        for by in [1.0, -1.0] {
            let Ok(nudged) = prepared.nudged(executions, by) else {
                continue;
            };
            for (n, answer) in ask(&nudged).into_iter().enumerate() {
                if found[n].is_none() && answer != stored[n] {
                    found[n] = Some(executions);
                }
            }
        }
    }
    found
}

/// For each claim, in how many of the seeds on their own it holds, and of how many. Seeds that the query says nothing of
/// are those of other claims.
fn of_seeds(
    prepared: &Prepared<'_>,
    ask: &impl Fn(&Tables) -> Vec<Answer>,
    claims: usize,
) -> Vec<Option<(usize, usize)>> {
    let mut found = vec![(0, 0); claims];
    for seed in prepared.executed_seeds() {
        if let Ok(tables) = prepared.of_seed(seed) {
            for ((holds, of), answer) in found.iter_mut().zip(ask(&tables)) {
                *holds += usize::from(answer.holds == Some(true));
                *of += usize::from(answer.holds.is_some());
            }
        }
    }
    let several = |(holds, of)| (of > 1).then_some((holds, of));
    found.into_iter().map(several).collect()
}

/// The first table of a claim that varies with the seed, and to whose numbers no draw adds a term.
fn unknown(claims: &Claims, claim: &Claim, prepared: &Prepared<'_>) -> Option<String> {
    let mut tables = claim.reads.iter().map(|at| &claims.tables[*at]);
    let unknown = |table: &&super::Table| {
        let mut sources = table.outputs.iter();
        sources.any(|source| prepared.is_seeded(*source) && !prepared.has_seed_term(*source))
    };
    tables.find(unknown).map(|table| table.name.clone())
}
