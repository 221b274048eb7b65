//! Which results a command shows. One rule for all of them: those of the pipeline, the profile and
//! the settings that are given now, and those of a past run only if `--run` names it. A past run is
//! named on standard error, so that it is not mistaken for the current one.
//!
//! `last` and `prev` are runs of this pipeline: several pipelines may share a store. With
//! `--profile` or `--set` they are those that were made with just these.

use std::collections::HashMap;

use clap::Args;
use store::{Run, RunId, Status, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::note;
use crate::config::{self, Pipeline, PipelineRequest};
use crate::diagnostic::Diagnostic;
use crate::environment::utc;
use crate::inspect::explain;
use crate::inspect::status::{InstanceStatus, instance_statuses, root_cause};
use crate::inspect::stored::{self, Unusable};
use crate::plan::{self, Plan};
use crate::publish::report::summary::invocation;
use crate::visible::one_line;

/// The option of every command that can show a past run.
#[derive(Args)]
pub struct RunOption {
    /// Show what a past run had: its number, its tag, `last` or `prev` (of this pipeline)
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// The option, or the name that was typed without it: `claims` and `report` took it so once.
pub fn either(option: &RunOption, older_spelling: &Option<String>) -> RunOption {
    if let Some(name) = older_spelling {
        note!("ablate: a run is now named with `--run {name}`");
    }
    RunOption {
        run: option.run.clone().or_else(|| older_spelling.clone()),
    }
}

/// The past run that was named, if one was.
pub fn past(global: &Global, store: &Store, option: &RunOption) -> Result<Option<Run>, Exit> {
    let Some(name) = &option.run else {
        return Ok(None);
    };
    let run = named(global, store, name)?;
    announce(global, &run);
    Ok(Some(run))
}

/// For commands that show whole runs: the one that was named, or the one that has the current
/// results.
pub fn shown(global: &Global, store: &Store, option: &RunOption) -> Result<Run, Exit> {
    match past(global, store, option)? {
        Some(run) => Ok(run),
        None => present(global, store),
    }
}

/// The run of this name: number, tag, `last` or `prev`; unless its record was altered.
pub fn named(global: &Global, store: &Store, name: &str) -> Result<Run, Exit> {
    sealed(global, store, find(global, store, name)?)
}

/// A run, if its record is the one that the log sealed.
fn sealed(global: &Global, store: &Store, run: Run) -> Result<Run, Exit> {
    match store.altered_run(&run)? {
        None => Ok(run),
        Some(why) => Err(Exit::Failed(
            Diagnostic::new(format!("the record of run {} is altered ({why})", run.id))
                .help("`ablate fsck` checks the whole store")
                .help(format!("`{}` recomputes results", global.command("run"))),
        )),
    }
}

fn find(global: &Global, store: &Store, name: &str) -> Result<Run, Exit> {
    let back = match name {
        "last" => 0,
        "prev" => 1,
        _ => return by_number_or_tag(global, store, name),
    };
    let own = Own::of(global);
    let any = overlay(global.profile.as_deref(), &global.set).is_empty();
    let runs = store.runs(usize::MAX)?.into_iter();
    let mut fitting = runs.filter(|run| own.has(run) && (any || fits(global, run)));
    fitting.nth(back).ok_or_else(|| none(global, back > 0))
}

fn by_number_or_tag(global: &Global, store: &Store, name: &str) -> Result<Run, Exit> {
    let found = match name.parse::<i64>() {
        Ok(id) => store.run(RunId(id))?,
        Err(_) => match store.tags()?.into_iter().find(|(tag, _)| tag == name) {
            Some((_, id)) if store.altered_tag(name, id)? => {
                let what = format!("the tag `{name}` was altered: it was not given to run {id}");
                let help = "`ablate fsck` checks the whole store; `ablate runs` lists the runs";
                return Err(Exit::Failed(Diagnostic::new(what).help(help)));
            }
            Some((_, id)) => store.run(id)?,
            None => None,
        },
    };
    let run = found.ok_or_else(|| {
        Diagnostic::new(format!("no run `{name}`"))
            .help("`ablate runs` lists them; a run is named by number, tag, `last` or `prev`")
    })?;
    let asked = overlay(global.profile.as_deref(), &global.set);
    if asked.is_empty() || fits(global, &run) {
        return Ok(run);
    }
    let was = match overlay(run.profile.as_deref(), &settings(&run)) {
        overlay if overlay.is_empty() => "without a profile or settings".to_owned(),
        overlay => format!("with {overlay}"),
    };
    let wrong = Diagnostic::new(format!("run {} was made {was}, not with {asked}", run.id));
    Err(wrong
        .help("a run that is named needs neither --profile nor --set")
        .into())
}

/// How many runs are searched for the one that has the current results.
const LOOK_BACK: usize = 100;

/// The run whose results are those of the pipeline, profile and settings given now: of several the
/// one with most of them, and of these the newest.
fn present(global: &Global, store: &Store) -> Result<Run, Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let statuses = instance_statuses(&plan, &vec![true; plan.instances.len()], Some(store));
    let labels = plan.instances.iter().enumerate();
    let labels: HashMap<&str, &InstanceStatus> = labels
        .map(|(n, instance)| (instance.label.as_str(), &statuses[n]))
        .collect();
    let own = Own::of(global);
    let runs = store.runs(usize::MAX)?.into_iter();
    let runs = runs.filter(|run| own.has(run) && fits(global, run));
    let (mut last, mut best): (Option<Run>, Option<(usize, Run)>) = (None, None);
    for run in runs.take(LOOK_BACK) {
        if let Some(results) = agreeing(store, &run, &labels)?
            && best.as_ref().is_none_or(|(most, _)| results > *most)
        {
            best = Some((results, run.clone()));
            if results == plan.instances.len() {
                break;
            }
        }
        last.get_or_insert(run);
    }
    match (best, last) {
        (Some((_, run)), _) => sealed(global, store, run),
        (None, None) => Err(none(global, false)),
        (None, Some(last)) => Err(outdated(global, &last)),
    }
}

/// No run has the current results; the newest of the pipeline is named.
fn outdated(global: &Global, last: &Run) -> Exit {
    let file = global.file.display();
    let (id, when) = (last.id, utc(last.started));
    let none = format!("no run has the results of `{file}` as it is now");
    Diagnostic::new(none)
        .help(format!("`{}` computes them", global.command("run")))
        .help(format!("`--run {id}` shows what was there on {when}"))
        .into()
}

/// How many results a run has, if all of them are current.
fn agreeing(
    store: &Store,
    run: &Run,
    now: &HashMap<&str, &InstanceStatus>,
) -> Result<Option<usize>, store::Error> {
    let mut results = 0;
    for used in store.uses(run.id)? {
        let Some(status) = now.get(used.instance.as_str()) else {
            return Ok(None);
        };
        let agrees = match (status, used.execution) {
            (InstanceStatus::Cached { execution, .. }, Some(id)) if id == *execution => true,
            // Made again since: the same bytes are the same result.
            (InstanceStatus::Cached { key, outputs, .. }, Some(id)) if used.key == Some(*key) => {
                let was = store.execution(id)?.map(|was| was.outputs);
                let was = was.into_iter().flatten().map(|output| output.digest);
                was.eq(outputs.iter().copied())
            }
            (status, _) => match (status.key(), used.key) {
                (Some(now), Some(was)) => now == was,
                // It was not tried, or what it reads is not there.
                _ => true,
            },
        };
        if !agrees {
            return Ok(None);
        }
        let has_result = matches!(used.status, Status::Ran | Status::Hit);
        results += usize::from(has_result && used.execution.is_some());
    }
    Ok(Some(results))
}

/// Says which past run is shown.
fn announce(global: &Global, run: &Run) {
    if global.quiet {
        return;
    }
    let mut line = format!("showing run {}", run.id);
    if !Own::of(global).has(run) {
        line.push_str(&format!(" of {} (`{}`)", run.file, run.pipeline));
    }
    if !run.tags.is_empty() {
        line.push_str(&format!(" (tag {})", run.tags.join(", ")));
    }
    line.push_str(&format!(", {}", utc(run.started)));
    let invocation = invocation(run);
    if !invocation.is_empty() {
        line.push_str(&format!(", {invocation}"));
    }
    note!("ablate: {}", one_line(&line));
}

/// The current pipeline file with the profile and the settings of a past run: its results have the
/// current names.
pub fn pipeline_of(global: &Global, run: &Run) -> Result<Pipeline, Exit> {
    let own = Own::of(global);
    if !own.has(run) {
        let (id, file, name) = (run.id, &run.file, global.file.display());
        return Err(
            Diagnostic::new(format!("run {id} is of {file}, not of {name}"))
                .help("-f names the pipeline file")
                .into(),
        );
    }
    Ok(config::read(&PipelineRequest {
        file: global.file.clone(),
        profile: run.profile.clone(),
        sets: settings(run),
    })?)
}

/// The past run that was named, if one was, and the pipeline that its results go by.
pub fn past_pipeline(
    global: &Global,
    store: &Store,
    option: &RunOption,
) -> Result<(Option<Run>, Pipeline), Exit> {
    let run = past(global, store, option)?;
    let pipeline = match &run {
        Some(run) => pipeline_of(global, run)?,
        None => global.pipeline()?,
    };
    Ok((run, pipeline))
}

/// Why an instance cannot be shown: it has not been run, or what the store has of it is not what
/// was made.
pub fn unshown(global: &Global, plan: &Plan<'_>, statuses: &[InstanceStatus], n: usize) -> Exit {
    match stored::unusable(plan, statuses, n) {
        Some(unusable) => unusable_exit(global, &unusable),
        None => changed(global, plan, statuses, n).unwrap_or_else(|| {
            let label = &plan.instances[n].label;
            Diagnostic::new(format!("`{label}` has not been run"))
                .help(global.command(&format!("run '{label}'")))
                .into()
        }),
    }
}

/// That an instance, or one that it reads, has changed since it was run, if that is why it has no result.
pub fn changed(
    global: &Global,
    plan: &Plan<'_>,
    statuses: &[InstanceStatus],
    n: usize,
) -> Option<Exit> {
    let at = root_cause(statuses, n);
    let InstanceStatus::WillRun(key) = &statuses[at] else {
        return None;
    };
    let store = global.existing_store().ok()??;
    let changes = explain::since_it_ran(plan, at, key, &store).ok()??;
    let (label, root) = (&plan.instances[n].label, &plan.instances[at].label);
    let which = match at == n {
        true => String::new(),
        false => format!(" reads `{root}`, which"),
    };
    let problem = format!("`{label}`{which} has changed since it was run: {changes}");
    let run = global.command(&format!("run '{label}'"));
    Some(Diagnostic::new(problem).help(run).into())
}

/// A result that was made and cannot be shown: the command has failed.
pub fn unusable_exit(global: &Global, unusable: &Unusable) -> Exit {
    let run = global.command(&format!("run '{}'", unusable.label));
    Exit::Failed(
        Diagnostic::new(unusable.to_string())
            .help(format!("`{run}` recomputes it"))
            .help("`ablate fsck` checks the whole store"),
    )
}

/// What distinguishes the runs of this pipeline from those of others.
struct Own {
    /// The file's name. None if there is no such file: then all runs are meant.
    file: Option<String>,
    /// The pipeline's name, as far as the file can be read.
    name: Option<String>,
}

impl Own {
    fn of(global: &Global) -> Own {
        let Ok(text) = std::fs::read_to_string(&global.file) else {
            return Own {
                file: None,
                name: None,
            };
        };
        let file = global.file.file_name().unwrap_or_default();
        let name = text.parse::<toml::Table>().ok().map(|table| {
            let name = table
                .get("pipeline")
                .and_then(|header| header.get("name")?.as_str());
            name.unwrap_or(config::UNNAMED).to_owned()
        });
        Own {
            file: Some(file.to_string_lossy().into_owned()),
            name,
        }
    }

    fn has(&self, run: &Run) -> bool {
        let file = self.file.as_ref().is_none_or(|file| *file == run.file);
        file && self.name.as_ref().is_none_or(|name| *name == run.pipeline)
    }
}

/// The runs of this pipeline, newest first.
pub fn own_runs(global: &Global, store: &Store, limit: usize) -> Result<Vec<Run>, Exit> {
    let own = Own::of(global);
    let runs = store.runs(usize::MAX)?.into_iter();
    Ok(runs.filter(|run| own.has(run)).take(limit).collect())
}

fn none(global: &Global, second: bool) -> Exit {
    let (file, asked) = (global.file.display(), typed(global));
    let which = if second { "no second run" } else { "no run" };
    let made = match asked.is_empty() {
        true => String::new(),
        false => format!(" made with{asked}"),
    };
    Diagnostic::new(format!("the store has {which} of `{file}`{made}"))
        .help(format!("`{}` creates one", global.command("run")))
        .help("`ablate runs` lists those that are there")
        .into()
}

fn fits(global: &Global, run: &Run) -> bool {
    // The order of settings matters only to a value that is set twice.
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    run.profile == global.profile && sorted(settings(run)) == sorted(global.set.clone())
}

/// What `--set` changed in a run.
pub fn settings(run: &Run) -> Vec<String> {
    serde_json::from_str(&run.settings).unwrap_or_default()
}

/// What was given besides, with a space before.
fn typed(global: &Global) -> String {
    match overlay(global.profile.as_deref(), &global.set) {
        asked if asked.is_empty() => asked,
        asked => format!(" {asked}"),
    }
}

/// As it is typed.
fn overlay(profile: Option<&str>, sets: &[String]) -> String {
    let profile = profile.map(|profile| format!("--profile {profile}"));
    let sets = sets.iter().map(|set| format!("--set {set}"));
    profile
        .into_iter()
        .chain(sets)
        .collect::<Vec<_>>()
        .join(" ")
}
