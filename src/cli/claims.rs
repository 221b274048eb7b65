//! `ablate claims`: each claim's verdict with our numbers and the paper's.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Map, Value, json};
use store::{Run, Store};

use super::{Exit, Global, history, in_pipeline, out};
use crate::claims::{self, Claims, Judged, Results, Trouble, Verdict};
use crate::config::{self, Request};
use crate::diagnostic::{self, Diagnostic, Problems};
use crate::plan::{self, Plan};
use crate::survey::{Standing, survey};

/// What `claims` takes.
#[derive(Args)]
pub struct Arguments {
    /// Judge by what a past run had instead: number, tag, `last` or `prev`
    run: Option<String>,
    /// Only check the file: its keys, the SQL, the tables
    #[arg(long, conflicts_with = "run")]
    check: bool,
}

/// Judges the claims and prints the verdicts, whatever they are.
pub fn claims(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.existing_store()?;
    let run = match &arguments.run {
        Some(name) => Some(past(global, store.as_ref(), name)?),
        None => None,
    };
    let profile = match &run {
        Some(run) => run.profile.clone(),
        None => global.profile.clone(),
    };
    let pipeline = match &run {
        Some(run) => config::read(&Request {
            file: global.file.clone(),
            profile: profile.clone(),
            sets: serde_json::from_str(&run.settings).unwrap_or_default(),
        })?,
        None => global.pipeline()?,
    };
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let Some(path) = claims::path(&global.file, &plan) else {
        let beside = global.file.display();
        return Err(
            Diagnostic::new(format!("there is no claims.toml beside {beside}"))
                .help("write one, or name a file: claims = \"FILE\" in [pipeline]")
                .help("docs/pipeline.md says what is in it")
                .into(),
        );
    };
    let claims = claims::read(&path, &plan)?;
    if arguments.check {
        if !global.quiet {
            out!("ablate: {} claims, nothing wrong", claims.list.len());
        }
        return Ok(());
    }
    let outputs = match (&store, &run) {
        (Some(store), Some(run)) => outputs_of_run(&plan, store, run)?,
        _ => current(&plan, &claims, store.as_ref()),
    };
    let results = Results {
        plan: &plan,
        store: store.as_ref(),
        outputs,
        profile: profile.as_deref(),
        run: run.as_ref().map(|run| run.id),
    };
    let judged = match claims::judge(&claims, &results) {
        Ok(judged) => judged,
        Err(Trouble::Store(error)) => return Err(error.into()),
        Err(Trouble::Wrong(list)) => {
            let sources = claims.sources;
            return Err(Problems { sources, list }.into());
        }
    };
    print(global, &judged)
}

/// The verdicts after a run, in numbers: none unless all that the claims of this profile read
/// is there.
pub fn after_run(
    global: &Global,
    plan: &Plan<'_>,
    claims: &Claims,
    store: &Store,
) -> Result<Option<BTreeMap<&'static str, usize>>, String> {
    let outputs = current(plan, claims, Some(store));
    let profile = global.profile.as_deref();
    let judged_here = claims.list.iter().filter(|claim| claim.is_for(profile));
    let mut read = judged_here
        .flat_map(|claim| &claim.reads)
        .flat_map(|at| &claims.tables[*at].outputs)
        .peekable();
    if read.peek().is_none() || read.any(|source| outputs[source.instance].is_none()) {
        return Ok(None);
    }
    let results = Results {
        plan,
        store: Some(store),
        outputs,
        profile,
        run: None,
    };
    match claims::judge(claims, &results) {
        Ok(judged) => Ok(Some(claims::count(&judged))),
        Err(Trouble::Store(error)) => Err(error.to_string()),
        Err(Trouble::Wrong(list)) => Err(diagnostic::render(&claims.sources, &list)),
    }
}

/// The run that was named.
fn past(global: &Global, store: Option<&Store>, name: &str) -> Result<Run, Exit> {
    if global.profile.is_some() || !global.set.is_empty() {
        return Err(
            Diagnostic::new("a past run has its own profile and settings")
                .help("leave out --profile and --set, or leave out the run")
                .into(),
        );
    }
    match store {
        Some(store) => history::find(store, name),
        None => global
            .needed_store()
            .and_then(|store| history::find(&store, name)),
    }
}

/// What is in the store now for this pipeline, of what the claims read.
fn current(
    plan: &Plan<'_>,
    claims: &Claims,
    store: Option<&Store>,
) -> Vec<Option<Vec<store::Digest>>> {
    let mut wanted = vec![false; plan.instances.len()];
    for source in claims.tables.iter().flat_map(|table| &table.outputs) {
        wanted[source.instance] = true;
    }
    plan::reach(plan, &mut wanted);
    let standings = survey(plan, &wanted, store).into_iter();
    let made = standings.map(|standing| match standing {
        Standing::Cached { outputs, .. } => Some(outputs),
        _ => None,
    });
    made.collect()
}

/// What a past run made or found, as far as it is still whole.
pub fn outputs_of_run(
    plan: &Plan<'_>,
    store: &Store,
    run: &Run,
) -> Result<Vec<Option<Vec<store::Digest>>>, store::Error> {
    let mut executions = BTreeMap::new();
    for used in store.uses(run.id)? {
        executions.extend(used.execution.map(|id| (used.instance, id)));
    }
    let mut made = Vec::with_capacity(plan.instances.len());
    for instance in &plan.instances {
        let execution = match executions.get(&instance.label) {
            Some(id) => store.execution(*id)?,
            None => None,
        };
        made.push(execution.and_then(|execution| {
            let named = |name: &String| {
                let output = execution
                    .outputs
                    .iter()
                    .find(|output| output.name == *name)?;
                store.has_whole(output).then_some(output.digest)
            };
            instance.outputs.iter().map(named).collect()
        }));
    }
    Ok(made)
}

fn print(global: &Global, judged: &[Judged<'_>]) -> Result<(), Exit> {
    if global.json {
        for one in judged {
            let numbers = one.numbers.iter();
            let numbers: Map<String, Value> = numbers
                .map(|number| (number.name.clone(), number.value.clone()))
                .collect();
            let why = match &one.verdict {
                Verdict::NotRun(why) => Some(why),
                _ => None,
            };
            out!(
                "{}",
                json!({
                    "claim": one.claim.id, "verdict": one.verdict.name(),
                    "level": one.claim.level, "text": one.claim.text,
                    "numbers": numbers, "paper": one.claim.paper, "why": why,
                })
            );
        }
        return Ok(());
    }
    let width = judged.iter().map(|one| one.claim.id.len()).max();
    let width = width.unwrap_or_default();
    for one in judged {
        let claim = one.claim;
        out!(
            "{:<14}  {:<width$}  {:<6}  {}",
            one.verdict.name(),
            claim.id,
            claim.level.name(),
            claim.text
        );
        if !one.numbers.is_empty() {
            let each = one.numbers.iter();
            let each = each.map(|number| format!("{} {}", number.name, number.shown));
            out!("{:16}ours   {}", "", each.collect::<Vec<_>>().join(", "));
        }
        if let Some(paper) = &claim.paper {
            out!("{:16}paper  {paper}", "");
        }
        if let Verdict::NotRun(why) = &one.verdict {
            out!("{:16}why    {why}", "");
        }
    }
    out!("claims: {}", claims::counted(&claims::count(judged)));
    Ok(())
}
