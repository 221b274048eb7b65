//! `ablate runs`: past runs, or the stages of one.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::{Execution, Run, Store, UseRecord};

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use super::run_selection;
use crate::amounts::seconds;
use crate::engine::progress::Worked;
use crate::environment::utc as time;
use crate::publish::report::summary::outcome;

/// What `runs` takes.
#[derive(Args)]
pub struct Arguments {
    /// A run: number, tag, `last` or `prev` (of this pipeline), to see its stages
    run: Option<String>,
    /// How many runs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// Lists runs, or what one run did.
pub fn runs(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    if let Some(name) = &arguments.run {
        return one_run(global, &store, &run_selection::named(global, &store, name)?);
    }
    for run in store.runs(arguments.limit)? {
        let uses = store.uses(run.id)?;
        let count = |status| uses.iter().filter(|used| used.status == status).count();
        let (ran, hits) = (count(store::Status::Ran), count(store::Status::Hit));
        if global.json {
            out!(
                "{}",
                json!({
                    "run": run.id, "started": time(run.started), "ended": run.ended.map(time),
                    "outcome": run.outcome, "pipeline": run.pipeline, "profile": run.profile,
                    "set": run.settings, "tags": run.tags, "ran": ran, "hits": hits,
                    "environment": run.environment,
                })
            );
            continue;
        }
        let overlay = run
            .profile
            .iter()
            .map(|profile| format!(" --profile {profile}"));
        let tags = run.tags.iter().map(|tag| format!(" #{tag}"));
        let extra: String = overlay.chain(settings(&run)).chain(tags).collect();
        out!(
            "{:>4}  {}  {:<11}  {ran} ran, {hits} cached  {:>8}  {}{extra}",
            run.id,
            time(run.started),
            outcome(&store, &run),
            wall(&run),
            run.pipeline
        );
    }
    Ok(())
}

fn settings(run: &Run) -> Vec<String> {
    run_selection::settings(run)
        .into_iter()
        .map(|set| format!(" --set {set}"))
        .collect()
}

fn one_run(global: &Global, store: &Store, run: &Run) -> Result<(), Exit> {
    if !global.json {
        print_header(store, run)?;
    }
    let uses = store.uses(run.id)?;
    let unsealed = store.unsealed(uses.iter().filter_map(|used| used.execution))?;
    for used in uses {
        let execution = execution(store, &used)?;
        let altered = used.execution.and_then(|id| unsealed.get(&id));
        if global.json {
            out!(
                "{}",
                json!({
                    "stage": used.instance, "status": used.status, "key": used.key,
                    "ms": used.wall.as_secs_f64() * 1e3, "altered": altered,
                    "execution": execution.map(|execution| json!({
                        "run": execution.run, "seed": execution.key.seed,
                        "cpu_ms": execution.cpu.map(|cpu| cpu.as_secs_f64() * 1e3),
                        "peak_memory": execution.peak_memory, "work": execution.work,
                        "rates": worked(&execution).rates(), "failure": execution.failure,
                        "inputs": execution.inputs, "outputs": execution.outputs,
                    })),
                })
            );
            continue;
        }
        let status = serde_json::to_value(used.status).unwrap_or_default();
        let detail = detail(execution.as_ref(), altered);
        out!(
            "{:<7}  {:>8}  {}  {detail}",
            status.as_str().unwrap_or_default(),
            seconds(used.wall),
            used.instance
        );
    }
    match unsealed.is_empty() {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

fn worked(execution: &Execution) -> Worked {
    Worked {
        taken: false,
        work: execution.work.clone(),
        wall: execution.wall,
    }
}

fn execution(store: &Store, used: &UseRecord) -> Result<Option<Execution>, Exit> {
    match used.execution {
        Some(id) => Ok(store.execution(id)?),
        None => Ok(None),
    }
}

fn wall(run: &Run) -> String {
    match run.ended {
        Some(ended) => {
            let micros = u64::try_from(ended - run.started).unwrap_or(0);
            seconds(Duration::from_micros(micros))
        }
        None => "-".to_owned(),
    }
}

fn print_header(store: &Store, run: &Run) -> Result<(), Exit> {
    let environment = &run.environment;
    out!(
        "run {} of {} ({}), {}",
        run.id,
        run.pipeline,
        run.file,
        outcome(store, run)
    );
    out!("started  {}, took {}", time(run.started), wall(run));
    let commit = environment
        .git_commit
        .as_deref()
        .unwrap_or("not in a repository");
    let dirty = if environment.git_dirty == Some(true) {
        ", with changes"
    } else {
        ""
    };
    out!("commit   {commit}{dirty}");
    out!(
        "machine  {}, {}, {}, {} threads",
        environment.host,
        environment.os,
        environment.cpu_model,
        environment.threads
    );
    Ok(())
}

/// What an instance made, how much it counted, or why it failed.
fn detail(execution: Option<&Execution>, altered: Option<&String>) -> String {
    if let Some(why) = altered {
        return format!("its record is altered ({why})");
    }
    match execution {
        Some(Execution {
            failure: Some(failure),
            ..
        }) => failure.lines().next().unwrap_or_default().to_owned(),
        Some(execution) => {
            let outputs = execution.outputs.iter();
            let each = outputs.map(|o| format!("{} {} rows {}", o.name, o.rows, o.digest.short()));
            let outputs = each.collect::<Vec<_>>().join(", ");
            match execution.work.is_empty() {
                true => outputs,
                false => format!("{outputs}  {}", worked(execution)),
            }
        }
        None => String::new(),
    }
}
