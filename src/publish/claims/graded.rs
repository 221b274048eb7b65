//! Verdicts with how sure they are: from kept evidence, or from draws.

use std::collections::BTreeSet;

use stages::tables::results::TABLE;
use stages::values_read::values_read;
use store::{Digest, Store};

use super::evidence::Evidence;
use super::grade::grade;
use super::judge::{Judged, Results, Verdict};
use super::{Claim, Claims, draw};
use crate::inspect::draws::{Outline, outline, prepare};
use crate::inspect::kept;
use crate::plan::Source;

/// How many draws verdicts rest on.
pub const DRAWS: u64 = 1000;

/// How draws are made.
pub struct Drawing<'a> {
    /// How many.
    pub draws: u64,
    /// Told how many are done, of how many.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Grades what was judged, drawing what is not kept from before.
pub fn grade_all(
    claims: &Claims,
    results: &Results<'_>,
    judged: &mut [Judged<'_>],
    drawing: &Drawing<'_>,
) -> Result<(), store::Error> {
    let Some((store, outline)) = about(claims, results, judged) else {
        return Ok(());
    };
    let key = |claim: &Claim| key(&outline, claims, claim, drawing.draws);
    let keys: Vec<Digest> = judged.iter().map(|one| key(one.claim)).collect();
    let mut missing = Vec::new();
    for (n, one) in judged.iter_mut().enumerate().filter(|(_, one)| asks(one)) {
        match find(store, &keys[n]) {
            Some(evidence) => settle(one, evidence),
            None => missing.push(n),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let prepared = prepare(outline, store, results.stored)?;
    let asked: Vec<&Claim> = missing.iter().map(|n| judged[*n].claim).collect();
    let draws = match prepared.vary_items() || prepared.vary_seeds() {
        true => drawing.draws,
        false => 0,
    };
    let done = |n: usize| (drawing.progress)(n as u64, draws);
    let found = draw::evidence(results.plan, claims, &asked, &prepared, draws, done);
    for (n, evidence) in missing.into_iter().zip(found) {
        // What failed is tried again the next time.
        let evidence = match evidence.failure {
            None => kept::keep(store.root(), &keys[n], &evidence),
            Some(_) => evidence,
        };
        settle(&mut judged[n], evidence);
    }
    Ok(())
}

/// Grades by what is kept of that many draws, or where nothing varies; nothing is graded if that is not enough.
pub fn grade_kept(
    claims: &Claims,
    results: &Results<'_>,
    judged: &mut [Judged<'_>],
    draws: u64,
) -> Result<(), store::Error> {
    let Some((store, outline)) = about(claims, results, judged) else {
        return Ok(());
    };
    if !outline.may_vary() {
        let drawing = Drawing {
            draws,
            progress: &|_, _| (),
        };
        return grade_all(claims, results, judged, &drawing);
    }
    let kept = |one: &Judged<'_>| {
        let key = key(&outline, claims, one.claim, draws);
        asks(one).then(|| find(store, &key))
    };
    let found: Vec<Option<Option<Evidence>>> = judged.iter().map(kept).collect();
    if found.contains(&Some(None)) {
        return Ok(());
    }
    for (one, evidence) in judged.iter_mut().zip(found) {
        if let Some(Some(evidence)) = evidence {
            settle(one, evidence);
        }
    }
    Ok(())
}

/// What is kept from before. Earlier versions also kept what failed.
fn find(store: &Store, key: &Digest) -> Option<Evidence> {
    let kept: Option<Evidence> = kept::find(store.root(), key);
    kept.filter(|evidence| evidence.failure.is_none())
}

/// What draws would be about; none if there is nothing to grade.
fn about<'a>(
    claims: &Claims,
    results: &Results<'a>,
    judged: &[Judged<'_>],
) -> Option<(&'a Store, Outline<'a>)> {
    if !judged.iter().any(asks) {
        return None;
    }
    let store = results.store?;
    // All that claims can read, whoever asks: draws of one claim must not depend on which others are graded with it.
    let outputs = claims.tables.iter().flat_map(|table| &table.outputs);
    let stored = outputs.filter(|source| results.stored.outputs[source.instance].is_some());
    let targets: Vec<Source> = stored.copied().collect();
    let read = |source: Source| tables_read(claims, source);
    let outline = outline(results.plan, store, results.stored, &targets, &read);
    Some((store, outline))
}

/// The tables of a paper that claims ask about in an output; none for all of them.
fn tables_read(claims: &Claims, source: Source) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for (at, table) in claims.tables.iter().enumerate() {
        if table.outputs.contains(&source) {
            for claim in claims.list.iter().filter(|claim| claim.reads.contains(&at)) {
                all.extend(values_read(&claim.query, &table.name, TABLE)?);
            }
        }
    }
    Some(all)
}

/// Whether there is anything to grade: what was not run has nothing.
fn asks(judged: &Judged<'_>) -> bool {
    !matches!(judged.verdict, Verdict::NotRun(_))
}

fn settle(judged: &mut Judged<'_>, evidence: Evidence) {
    judged.verdict = grade(judged.claim, &judged.verdict, &evidence);
    judged.evidence = Some(evidence);
}

/// What decides the evidence for a claim.
fn key(outline: &Outline<'_>, claims: &Claims, claim: &Claim, draws: u64) -> Digest {
    let tables = claim.reads.iter().map(|at| &claims.tables[*at]);
    let tables: Vec<String> = tables
        .map(|table| format!("{} {:?}", table.name, outline.labels(&table.outputs)))
        .collect();
    let text = format!("{} {draws} {tables:?} {}", outline.digest, claim.query);
    Digest::of(text.as_bytes())
}
