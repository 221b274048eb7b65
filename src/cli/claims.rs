//! `ablate claims`: each claim's verdict with our numbers and the paper's.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection::{self, RunOption};
use super::verdicts::{self, JudgedBy};
use super::worlds;
use crate::amounts::{counted, plural};
use crate::diagnostic::{self, Diagnostic, Problems};
use crate::inspect::stored::{self, Stored};
use crate::plan::{self, Plan};
use crate::publish::claims::{
    self, Claim, Claims, ClaimsError, Drawing, Evidence, Judged, Results, Share, Verdict,
};
use crate::publish::multiverse::{self, ClaimAcross, ClaimInWorld};
use crate::results::degenerate;

/// What `claims` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: RunOption,
    /// The same as --run
    #[arg(hide = true, value_name = "RUN", conflicts_with = "run")]
    older_spelling: Option<String>,
    /// Only check the file: its keys, the SQL, the tables
    #[arg(long, conflicts_with_all = ["run", "older_spelling"])]
    check: bool,
    /// How many draws of items and seeds to judge by
    #[arg(long, value_name = "N", default_value_t = claims::DRAWS, value_parser = clap::value_parser!(u64).range(40..))]
    draws: u64,
    /// Also write the verdicts to this file, with the digests of the pipeline and of the claims
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    write: Option<PathBuf>,
}

/// Judges the claims and prints the verdicts, whatever they are.
pub fn claims(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let option = run_selection::either(&arguments.which, &arguments.older_spelling);
    let store = match &option.run {
        Some(_) => Some(global.needed_store()?),
        None => global.existing_store()?,
    };
    let run = match &store {
        Some(store) => run_selection::past(global, store, &option)?,
        None => None,
    };
    let profile = match &run {
        Some(run) => run.profile.clone(),
        None => global.profile.clone(),
    };
    let pipeline = match &run {
        Some(run) => run_selection::pipeline_of(global, run)?,
        None => global.pipeline()?,
    };
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let path = claims::path(&global.file, &plan).ok_or_else(|| no_claims(global))?;
    let claims = claims::read(&path, &plan)?;
    if arguments.check {
        if !global.quiet {
            out!(
                "ablate: {}, nothing wrong",
                plural(claims.list.len(), "claim")
            );
        }
        return Ok(());
    }
    let stored = match (&store, &run) {
        (Some(store), Some(run)) => stored::of_run(&plan, store, run)?,
        _ => current(&plan, &claims, store.as_ref()),
    };
    let results = Results {
        plan: &plan,
        store: store.as_ref(),
        stored: &stored,
        profile: profile.as_deref(),
        run: run.as_ref().map(|run| run.id),
    };
    let mut judged = match claims::judge(&claims, &results) {
        Ok(judged) => judged,
        Err(ClaimsError::Store(error)) => return Err(error.into()),
        Err(ClaimsError::Wrong(list)) => {
            let sources = claims.sources;
            return Err(Problems { sources, list }.into());
        }
    };
    grade(global, &claims, &results, &mut judged, arguments.draws)?;
    if run.is_none() {
        note_worlds(global, &mut judged, arguments.draws)?;
    }
    let behind = |claim: &Claim| {
        let read = claim
            .reads
            .iter()
            .flat_map(|at| &claims.tables[*at].outputs);
        let read = read.map(|source| source.instance);
        match &store {
            Some(store) => degenerate::behind(&plan, store, &stored.outputs, read),
            None => Vec::new(),
        }
    };
    if let Some(file) = &arguments.write {
        let by = JudgedBy {
            pipeline: pipeline.sources.text(0),
            claims: &path,
            profile: profile.as_deref(),
            draws: arguments.draws,
            set: &global.set,
        };
        let each = judged.iter();
        let each = each.map(|one| for_programs(one, one.notes.clone()));
        verdicts::write(file, &by, &each.collect::<Vec<_>>())?;
    }
    if global.json || !global.quiet {
        print(global, &judged, behind)?;
    }
    let judged_here = claims
        .list
        .iter()
        .filter(|claim| claim.is_for(results.profile));
    let mut read = judged_here
        .flat_map(|claim| &claim.reads)
        .flat_map(|at| &claims.tables[*at].outputs);
    match read.any(|source| stored.is_wrong(source.instance)) {
        true => Err(Exit::Code(1)),
        false => Ok(()),
    }
}

/// Grades the verdicts, with a bar where somebody watches.
fn grade(
    global: &Global,
    claims: &Claims,
    results: &Results<'_>,
    judged: &mut [Judged<'_>],
    draws: u64,
) -> Result<(), Exit> {
    let watched = !global.json && !global.quiet && std::io::stderr().is_terminal();
    let bar = match watched {
        true => ProgressBar::new(draws),
        false => ProgressBar::hidden(),
    };
    let style =
        ProgressStyle::with_template("{bar:30.green} {pos}/{len} draws  {elapsed}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let progress = |done: u64, _: u64| bar.set_position(done);
    let drawing = Drawing {
        draws,
        progress: &progress,
    };
    let graded = claims::grade_all(claims, results, judged, &drawing);
    bar.finish_and_clear();
    Ok(graded?)
}

/// What the claims say of the current results, graded by draws.
pub fn graded(global: &Global, draws: u64) -> Result<Vec<ClaimInWorld>, Exit> {
    said(global, |claims, results, judged| {
        grade(global, claims, results, judged, draws)
    })
}

/// The same without drawing: verdicts that are not known yet stay ungraded.
fn kept(global: &Global, draws: u64) -> Result<Vec<ClaimInWorld>, Exit> {
    said(global, |claims, results, judged| {
        Ok(claims::grade_kept(claims, results, judged, draws)?)
    })
}

fn said(
    global: &Global,
    grade: impl FnOnce(&Claims, &Results<'_>, &mut [Judged<'_>]) -> Result<(), Exit>,
) -> Result<Vec<ClaimInWorld>, Exit> {
    let store = global.existing_store()?;
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let path = claims::path(&global.file, &plan).ok_or_else(|| no_claims(global))?;
    let claims = claims::read(&path, &plan)?;
    let stored = current(&plan, &claims, store.as_ref());
    let results = Results {
        plan: &plan,
        store: store.as_ref(),
        stored: &stored,
        profile: global.profile.as_deref(),
        run: None,
    };
    let mut judged = match claims::judge(&claims, &results) {
        Ok(judged) => judged,
        Err(ClaimsError::Store(error)) => return Err(error.into()),
        Err(ClaimsError::Wrong(list)) => {
            let sources = claims.sources;
            return Err(Problems { sources, list }.into());
        }
    };
    grade(&claims, &results, &mut judged)?;
    let said = judged.iter().map(|one| {
        let intervals = one.evidence.as_ref().map(|evidence| &evidence.intervals);
        let numbers = one.numbers.iter().map(|number| {
            let interval = intervals.and_then(|all| all.get(&number.name));
            let ends = interval.map(|interval| [interval.low, interval.high]);
            (number.name.clone(), number.value.as_f64(), ends)
        });
        ClaimInWorld {
            claim: one.claim.id.clone(),
            verdict: one.word().to_owned(),
            // A verdict that is not graded yet cannot be compared with one that is.
            run: one.evidence.is_some(),
            numbers: numbers.collect(),
        }
    });
    Ok(said.collect())
}

/// What the claims say in the worlds that have been run so far, each choice alone: verdicts of that many draws that are
/// known already.
pub fn so_far(global: &Global, draws: u64) -> Result<Option<Vec<ClaimAcross>>, Exit> {
    let pipeline = global.pipeline()?;
    // With a choice taken this is one of the worlds, and the others are not those beside it.
    if pipeline.choices.is_empty() || worlds::takes_a_choice(global) {
        return Ok(None);
    }
    let all = multiverse::worlds(&pipeline, false);
    let mut said = Vec::with_capacity(all.len());
    for world in &all {
        let mut own = worlds::in_world(global, world);
        own.quiet = true;
        said.push(kept(&own, draws)?);
    }
    Ok(Some(multiverse::across(&all, &said)))
}

/// Notes beside each verdict whether it is the same in the worlds that have been run.
fn note_worlds(global: &Global, judged: &mut [Judged<'_>], draws: u64) -> Result<(), Exit> {
    let Some(across) = so_far(global, draws)? else {
        return Ok(());
    };
    for (one, across) in judged.iter_mut().zip(across) {
        // Compared are verdicts of as many draws as worlds were judged by: this one may not be known.
        if across.run < 2 || across.worlds.first().is_none_or(|own| !own.run) {
            continue;
        }
        let turns = match across.turns_with.is_empty() {
            true => String::new(),
            false => format!("; turns with {}", across.turns_with.join(", ")),
        };
        let (same, run) = (across.same, across.run);
        one.notes
            .push(format!("agrees in {same} of {run} worlds{turns}"));
    }
    Ok(())
}

pub(super) fn no_claims(global: &Global) -> Diagnostic {
    let beside = global.file.display();
    Diagnostic::new(format!("no claims.toml beside {beside}"))
        .help("write one, or name a file: claims = \"FILE\" in [pipeline]")
        .help("docs/pipeline.md describes the format")
}

/// The verdicts after a run, in numbers: none unless all that the claims of this profile read
/// is there.
pub fn after_run(
    global: &Global,
    plan: &Plan<'_>,
    claims: &Claims,
    store: &Store,
) -> Result<Option<BTreeMap<&'static str, usize>>, String> {
    let stored = current(plan, claims, Some(store));
    let profile = global.profile.as_deref();
    let judged_here = claims.list.iter().filter(|claim| claim.is_for(profile));
    let mut read = judged_here
        .flat_map(|claim| &claim.reads)
        .flat_map(|at| &claims.tables[*at].outputs)
        .peekable();
    if read.peek().is_none() || read.any(|source| stored.outputs[source.instance].is_none()) {
        return Ok(None);
    }
    let results = Results {
        plan,
        store: Some(store),
        stored: &stored,
        profile,
        run: None,
    };
    match claims::judge(claims, &results) {
        Ok(mut judged) => {
            let graded = claims::grade_kept(claims, &results, &mut judged, claims::DRAWS);
            graded.map_err(|error| error.to_string())?;
            Ok(Some(claims::count(&judged)))
        }
        Err(ClaimsError::Store(error)) => Err(error.to_string()),
        Err(ClaimsError::Wrong(list)) => Err(diagnostic::render(&claims.sources, &list)),
    }
}

/// What is in the store now for this pipeline, of what the claims read.
fn current(plan: &Plan<'_>, claims: &Claims, store: Option<&Store>) -> Stored {
    let mut wanted = vec![false; plan.instances.len()];
    for source in claims.tables.iter().flat_map(|table| &table.outputs) {
        wanted[source.instance] = true;
    }
    plan::reach(plan, &mut wanted);
    stored::now(plan, &wanted, store)
}

/// Prints the verdicts. `behind` says what is odd about the results that a claim reads.
fn print(
    global: &Global,
    judged: &[Judged<'_>],
    behind: impl Fn(&Claim) -> Vec<String>,
) -> Result<(), Exit> {
    // Claims mostly read the same tables.
    let mut known: BTreeMap<&[usize], Vec<String>> = BTreeMap::new();
    for one in judged
        .iter()
        .filter(|one| !matches!(one.verdict, Verdict::NotRun(_)))
    {
        let reads = one.claim.reads.as_slice();
        known.entry(reads).or_insert_with(|| behind(one.claim));
    }
    let notes = |one: &Judged<'_>| -> Vec<String> {
        let behind = known.get(one.claim.reads.as_slice());
        let behind = behind.into_iter().flatten();
        one.notes.iter().chain(behind).cloned().collect()
    };
    if global.json {
        for one in judged {
            out!("{}", for_programs(one, notes(one)));
        }
        return Ok(());
    }
    let width = judged.iter().map(|one| one.claim.id.len()).max();
    let width = width.unwrap_or_default();
    for one in judged {
        let claim = one.claim;
        out!(
            "{:<14}  {:<width$}  {:<6}  {}",
            one.word(),
            claim.id,
            claim.level.name(),
            claim.text
        );
        if !one.numbers.is_empty() {
            let each = one.ours().into_iter();
            let each = each.map(|(name, number)| format!("{name} {number}"));
            out!("{:16}ours   {}", "", each.collect::<Vec<_>>().join(", "));
        }
        if let Some(paper) = one.paper() {
            out!("{:16}paper  {paper}", "");
        }
        if let Some(draws) = one.draws() {
            out!("{:16}draws  {draws}", "");
        }
        if let Some(why) = one.why() {
            out!("{:16}why    {why}", "");
        }
        for note in &one.notes {
            out!("{:16}note   {note}", "");
        }
    }
    let mut printed: Vec<&String> = Vec::new();
    for note in known.values().flatten() {
        if !printed.contains(&note) {
            out!("note: {note}");
            printed.push(note);
        }
    }
    if let Some(note) = without_seeds(judged) {
        out!("note: {note}");
    }
    out!("claims: {}", counted(&claims::count(judged)));
    Ok(())
}

/// A claim about trained models should say how many executions it wants to be judged on.
fn without_seeds(judged: &[Judged<'_>]) -> Option<String> {
    let lacking: Vec<&str> = judged
        .iter()
        .filter(|one| one.lacks_seeds())
        .map(|one| one.claim.id.as_str())
        .collect();
    let first = lacking.first()?;
    let others = match lacking.len() - 1 {
        0 => String::new(),
        1 => ", and to one more claim".to_owned(),
        more => format!(", and to {more} more claims"),
    };
    Some(format!(
        "say how many executions a claim about trained models must be judged on: add `seeds = 3` to [claim.{first}]{others}"
    ))
}

/// A claim with all that is known of it.
fn for_programs(one: &Judged<'_>, notes: Vec<String>) -> Value {
    let numbers = one.numbers.iter();
    let numbers: Map<String, Value> = numbers
        .map(|number| (number.name.clone(), number.value.clone()))
        .collect();
    let evidence = one.evidence.as_ref();
    let intervals = evidence.map(|evidence| &evidence.intervals);
    let papers = one.claim.paper_numbers.iter();
    let papers: Map<String, Value> = papers
        .map(|(name, number)| {
            let interval = intervals.and_then(|all| all.get(name));
            let inside = interval.map(|interval| interval.contains(*number));
            (name.clone(), json!({ "value": number, "inside": inside }))
        })
        .collect();
    let share = |share: &Share| json!({ "holds": share.holds, "undefined": share.undefined, "of": share.of });
    let shares = |get: fn(&Evidence) -> Option<&Share>| evidence.and_then(get).map(share);
    let drawn = evidence.filter(|evidence| evidence.draws.of > 0);
    json!({
        "claim": one.claim.id, "verdict": one.word(), "holds": one.holds,
        "level": one.claim.level, "text": one.claim.text,
        "numbers": numbers, "intervals": intervals,
        "paper": one.claim.paper, "paper_numbers": papers, "why": one.why(),
        "draws": drawn.map(|evidence| share(&evidence.draws)),
        "draws_of_items": shares(|evidence| evidence.items.as_ref()),
        "draws_of_seeds": shares(|evidence| evidence.seeds.as_ref()),
        "executions": evidence.and_then(|evidence| evidence.executions),
        "seeds_needed": one.claim.seeds,
        "of_seeds": evidence.and_then(|evidence| evidence.of_seeds).map(|(holds, of)| json!({ "holds": holds, "of": of })),
        "failed_draws": evidence.and_then(|evidence| evidence.failure.as_ref()),
        "notes": notes,
    })
}
