//! Asks the claims' queries about results that are there, and gives verdicts.
//! Runs no stage.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use store::{RunId, Store};

use super::evidence::Evidence;
use super::numbers::{Holds, Number, take_apart};
use super::{Claim, Claims, Level, Table};
use crate::diagnostic::Diagnostic;
use crate::inspect::stored::Stored;
use crate::plan::Plan;
use crate::results::degenerate;
use crate::results::table::{self as result_table, TableError};

/// The results to judge by.
pub struct Results<'a> {
    /// The pipeline's instances.
    pub plan: &'a Plan<'a>,
    /// Where the tables are.
    pub store: Option<&'a Store>,
    /// What each instance has there.
    pub stored: &'a Stored,
    /// The profile that they are of.
    pub profile: Option<&'a str>,
    /// The past run that they are of; `None` for the current results.
    pub run: Option<RunId>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds, and would with other items and seeds.
    Reproduced,
    /// It does not, and would not with other items and seeds.
    NotReproduced,
    /// It holds or does not, and might not with other items and seeds: what would decide it.
    Uncertain(String),
    /// It cannot be judged, and why.
    NotRun(String),
    /// It says nothing that could hold: here are the numbers.
    Reported,
}

impl Verdict {
    /// In words.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "not reproduced",
            Verdict::Uncertain(_) => "uncertain",
            Verdict::NotRun(_) => "not run",
            Verdict::Reported => "reported",
        }
    }
}

/// A claim with its verdict and the numbers behind it.
pub struct Judged<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// What became of it.
    pub verdict: Verdict,
    /// The other columns of its query's row.
    pub numbers: Vec<Number>,
    /// What is odd about the rows that it was judged by.
    pub notes: Vec<String>,
    /// Whether it holds in the results themselves, if it says anything that could.
    pub holds: Option<bool>,
    /// How sure the verdict is; none before it is graded.
    pub evidence: Option<Evidence>,
}

/// Why there are no verdicts.
pub enum ClaimsError {
    /// The file of claims is wrong; these point into it.
    Wrong(Vec<Diagnostic>),
    /// A result cannot be read.
    Store(store::Error),
}

/// Asks all claims of the results as they are; [`grade_all`](super::grade_all) says how sure that is. Every query that
/// is wrong is reported.
pub fn judge<'a>(
    claims: &'a Claims,
    results: &Results<'_>,
) -> Result<Vec<Judged<'a>>, ClaimsError> {
    let mut tables: BTreeMap<usize, RecordBatch> = BTreeMap::new();
    let (mut judged, mut problems) = (Vec::with_capacity(claims.list.len()), Vec::new());
    for claim in &claims.list {
        let mut notes = Vec::new();
        let (verdict, numbers) = match why_not(claim, claims, results) {
            Some(why) => (Verdict::NotRun(why), Vec::new()),
            None => {
                let inputs = inputs(claim, claims, results, &mut tables)?;
                match ask(claim, inputs.clone()) {
                    Ok(found) => {
                        notes.extend(single_rows(claim, inputs, &found));
                        found
                    }
                    Err(problem) => {
                        problems.push(problem);
                        continue;
                    }
                }
            }
        };
        judged.push(Judged {
            claim,
            holds: match verdict {
                Verdict::Reproduced => Some(true),
                Verdict::NotReproduced => Some(false),
                _ => None,
            },
            verdict,
            numbers,
            notes,
            evidence: None,
        });
    }
    match problems.is_empty() {
        true => Ok(judged),
        false => Err(ClaimsError::Wrong(problems)),
    }
}

/// The tables that a claim's query reads, by name; each is loaded once.
fn inputs(
    claim: &Claim,
    claims: &Claims,
    results: &Results<'_>,
    tables: &mut BTreeMap<usize, RecordBatch>,
) -> Result<BTreeMap<String, RecordBatch>, ClaimsError> {
    let mut inputs = BTreeMap::new();
    for at in &claim.reads {
        let table = match tables.get(at) {
            Some(table) => table.clone(),
            None => load(&claims.tables[*at], results)?,
        };
        tables.insert(*at, table.clone());
        inputs.insert(claims.tables[*at].name.clone(), table);
    }
    Ok(inputs)
}

/// Whether a verdict or its numbers rest on rows that were measured on a single row: they do if they are others
/// without these.
fn single_rows(
    claim: &Claim,
    mut tables: BTreeMap<String, RecordBatch>,
    found: &(Verdict, Vec<Number>),
) -> Option<String> {
    let mut names = Vec::new();
    for (name, table) in &mut tables {
        if let Some((left, count)) = degenerate::without_single_rows(table) {
            names.push(format!("{count} of {} rows of `{name}`", table.num_rows()));
            *table = left;
        }
    }
    if names.is_empty() || matches!(found.0, Verdict::NotRun(_)) {
        return None;
    }
    let same = ask(claim, tables).is_ok_and(|without| without == *found);
    (!same).then(|| {
        format!(
            "rests on numbers measured on a single row (n = 1): {}",
            names.join(", ")
        )
    })
}

/// How many claims there are of each verdict.
pub fn count(judged: &[Judged<'_>]) -> BTreeMap<&'static str, usize> {
    let graded = |one: &Judged<'_>| one.holds.is_none() || one.evidence.is_some();
    let always: &[&str] = match judged.iter().all(graded) {
        true => &["reproduced", "uncertain", "not reproduced", "not run"],
        false => &["holds", "does not hold", "not run"],
    };
    let mut counts: BTreeMap<&'static str, usize> = always.iter().map(|name| (*name, 0)).collect();
    for one in judged {
        *counts.entry(one.word()).or_default() += 1;
    }
    counts
}

/// Why a claim cannot be judged by these results, before its query is asked.
fn why_not(claim: &Claim, claims: &Claims, results: &Results<'_>) -> Option<String> {
    if !claim.is_for(results.profile) {
        let here = match results.profile {
            Some(profile) => format!("not in profile {profile}"),
            None => "not without a profile".to_owned(),
        };
        return Some(format!("judged in {}, {here}", claim.profiles.join(", ")));
    }
    let outputs = claim
        .reads
        .iter()
        .flat_map(|at| &claims.tables[*at].outputs);
    let missing = outputs
        .map(|source| source.instance)
        .find(|n| results.stored.outputs[*n].is_none())?;
    let label = &results.plan.instances[missing].label;
    Some(match (results.stored.faults.get(&missing), results.run) {
        (Some(unusable), _) => unusable.to_string(),
        (None, Some(run)) => format!("run {run} has no stored result of `{label}`"),
        (None, None) => format!("`{label}` has not been run"),
    })
}

fn load(table: &Table, results: &Results<'_>) -> Result<RecordBatch, ClaimsError> {
    let store = results.store.expect("what is made is in a store");
    let made = |n: usize| {
        results.stored.outputs[n]
            .as_ref()
            .expect("looked at before")
    };
    let found: Vec<_> = table
        .outputs
        .iter()
        .map(|source| (*source, made(source.instance)[source.output]))
        .collect();
    result_table::of_plan(results.plan, store, &found).map_err(|error| match error {
        TableError::Store(error) => ClaimsError::Store(error),
        TableError::Mismatch(failure) => ClaimsError::Wrong(vec![
            Diagnostic::new(format!("table `{}`: {}", table.name, failure.message))
                .at(table.span, "")
                .help("name one instance: \"stage[axis=value]\""),
        ]),
    })
}

fn ask(
    claim: &Claim,
    tables: BTreeMap<String, RecordBatch>,
) -> Result<(Verdict, Vec<Number>), Diagnostic> {
    let id = &claim.id;
    let wrong = |what: String| {
        Diagnostic::new(format!("the query of claim `{id}` {what}")).at(claim.query_span, "")
    };
    let row = stages::sql::query(tables, &claim.query, || false).map_err(|failure| {
        wrong(format!("failed: {}", failure.message)).maybe_help(failure.help)
    })?;
    match row.num_rows() {
        0 => {
            let why = "the query returned no rows: what it selects is not in its tables";
            return Ok((Verdict::NotRun(why.to_owned()), Vec::new()));
        }
        1 => {}
        rows => {
            return Err(wrong(format!("returned {rows} rows instead of one"))
                .help("a claim is judged by one row: aggregate, or filter"));
        }
    }
    let (holds, numbers) = take_apart(&row);
    let verdict = match holds {
        Holds::Absent if claim.level == Level::Info => Verdict::Reported,
        Holds::Absent => {
            return Err(wrong("has no column `holds`".to_owned())
                .help("state what must be true: SELECT a > b AS holds, a, b FROM …"));
        }
        Holds::Wrong(kind) => {
            return Err(wrong(format!("has `holds` of type {kind}, not a boolean"))
                .help("compare something: SELECT a > b AS holds, a, b FROM …"));
        }
        // polars holds that a NaN is larger than all numbers; no claim is about that.
        Holds::Said(_) if numbers.iter().any(|number| number.is_nan) => {
            Verdict::NotRun(format!("{} is NaN", names(&numbers, |n| n.is_nan)))
        }
        Holds::Said(Some(true)) => Verdict::Reproduced,
        Holds::Said(Some(false)) => Verdict::NotReproduced,
        Holds::Said(None) => {
            let missing = names(&numbers, |number| number.value.is_null());
            Verdict::NotRun(match missing.is_empty() {
                true => "`holds` is NULL: a number is missing".to_owned(),
                false => format!("`holds` is NULL, and so is {missing}"),
            })
        }
    };
    Ok((verdict, numbers))
}

fn names(numbers: &[Number], which: impl Fn(&Number) -> bool) -> String {
    let each = numbers.iter().filter(|number| which(number));
    let each = each.map(|number| format!("`{}`", number.name));
    each.collect::<Vec<_>>().join(", ")
}
