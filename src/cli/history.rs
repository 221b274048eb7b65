//! `ablate runs`, `ablate diff` and `ablate tag`: what was done before.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::{Execution, Run, Store, UseRecord};

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use super::which;
use crate::amounts::seconds;
use crate::diagnostic::Diagnostic;
use crate::engine::progress::Worked;
use crate::environment::utc as time;
use crate::inspect::compare;
use crate::publish::report::summary::outcome;

/// What `runs` takes.
#[derive(Args)]
pub struct RunsArguments {
    /// A run: number, tag, `last` or `prev` (of this pipeline), to see its stages
    run: Option<String>,
    /// How many runs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// What `diff` takes.
#[derive(Args)]
pub struct DiffArguments {
    /// The older run: number, tag, `last` or `prev` (of this pipeline)
    #[arg(default_value = "prev")]
    old: String,
    /// The newer run
    #[arg(default_value = "last")]
    new: String,
}

/// What `tag` takes.
#[derive(Args)]
pub struct TagArguments {
    /// The name
    name: String,
    /// The run: number, tag, `last` or `prev` (of this pipeline)
    #[arg(default_value = "last")]
    run: String,
}

/// Lists runs, or what one run did.
pub fn runs(global: &Global, arguments: &RunsArguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    if let Some(name) = &arguments.run {
        return one_run(global, &store, &which::named(global, &store, name)?);
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
    which::settings(run)
        .into_iter()
        .map(|set| format!(" --set {set}"))
        .collect()
}

fn one_run(global: &Global, store: &Store, run: &Run) -> Result<(), Exit> {
    let environment = &run.environment;
    if !global.json {
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
        let detail = match &execution {
            _ if altered.is_some() => {
                format!(
                    "its record is altered ({})",
                    altered.expect("just looked at")
                )
            }
            Some(Execution {
                failure: Some(failure),
                ..
            }) => failure.lines().next().unwrap_or_default().to_owned(),
            Some(execution) => {
                let outputs = execution.outputs.iter();
                let each =
                    outputs.map(|o| format!("{} {} rows {}", o.name, o.rows, o.digest.short()));
                let outputs = each.collect::<Vec<_>>().join(", ");
                match execution.work.is_empty() {
                    true => outputs,
                    false => format!("{outputs}  {}", worked(execution)),
                }
            }
            None => String::new(),
        };
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

/// What two runs did differently: parameters, artifacts, rows of results.
pub fn diff(global: &Global, arguments: &DiffArguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let run = |name: &str| which::named(global, &store, name);
    let (old, new) = (run(&arguments.old)?, run(&arguments.new)?);
    let compare::Runs {
        same,
        differ,
        altered,
    } = compare::runs(&store, old.id, new.id)?;
    for instance in differ {
        let stage = &instance.stage;
        if let Some(note) = &instance.note {
            match global.json {
                true => out!("{}", json!({ "stage": stage, "note": note })),
                false => out!("{stage}: {note}"),
            }
            continue;
        }
        let (fields, tables) = (&instance.fields, &instance.outputs);
        if global.json {
            out!(
                "{}",
                json!({ "stage": stage, "fields": fields, "outputs": tables })
            );
            continue;
        }
        out!("{stage}");
        for field in fields {
            out!("  {field}");
        }
        for table in tables {
            out!("  {table}");
        }
        if fields.is_empty() && tables.is_empty() {
            out!("  executed again, same bytes");
        }
    }
    if !global.json {
        out!(
            "ablate: {same} stages the same in runs {} and {}",
            old.id,
            new.id
        );
    }
    match altered {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

/// Refuses tags that would be mistaken for something else.
pub fn check_tag(name: &str) -> Result<(), Exit> {
    if name.trim().is_empty() {
        return Err(Diagnostic::new("a tag needs a name").into());
    }
    if name.parse::<i64>().is_ok() || name == "last" || name == "prev" {
        return Err(Diagnostic::new(format!("`{name}` would be mistaken for a run")).into());
    }
    Ok(())
}

/// Names a run.
pub fn tag(global: &Global, arguments: &TagArguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let run = which::named(global, &store, &arguments.run)?;
    let name = &arguments.name;
    check_tag(name)?;
    match store.tag(run.id, name)? {
        Some(before) if before != run.id => out!("{name}: run {} (before: run {before})", run.id),
        _ => out!("{name}: run {}", run.id),
    }
    Ok(())
}

fn worked(execution: &Execution) -> Worked {
    Worked {
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
