//! `ablate run`.

use std::collections::{BTreeMap, HashSet};
use std::io::IsTerminal;
use std::path::PathBuf;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use store::{NewRun, RunId, RunOutcome, Status, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::locked;
use super::places::Places;
use super::queue::ExecutorOptions;
use super::remote::RemoteOptions;
use super::secrets;
use super::stop::{checkpoint_requests, stop_flag};
use crate::amounts::plural;
use crate::engine::checkpoint::CheckpointTimes;
use crate::engine::progress::{Bars, Event, Json, Lines, Quiet, Reporter, Tally};
use crate::engine::scheduler;
use crate::environment;
use crate::inspect::queued::queued;
use crate::plan::{self, Plan};
use crate::publish::claims::{self, Claims};
use crate::results::degenerate::{self, Piece};
use crate::results::find;

/// What `run` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to run, with all that they read: `stage` or `stage[axis=value]` [default: all]
    targets: Vec<String>,
    /// Maximum number of concurrent stages and of threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// After a failure, keep running stages that do not depend on it
    #[arg(short, long)]
    keep_going: bool,
    /// Run programs of `command` stages without a sandbox
    #[arg(long)]
    no_sandbox: bool,
    /// How often long stages save a checkpoint to resume from, in seconds, 0 = as often as they can
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    checkpoint_every: u64,
    /// Name this run, which keeps its results from gc
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
    #[command(flatten)]
    executor: ExecutorOptions,
    #[command(flatten)]
    remote: RemoteOptions,
    /// Keep the store's database in this folder on a local disk, from now on: for stores on network file systems
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Compare what comes out with this lock; the exit code is 1 if it differs [default: results.lock beside the
    /// pipeline file]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    locked: Option<Option<PathBuf>>,
    #[command(flatten)]
    places: Places,
}

/// Reads, plans, runs, records.
pub fn run(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if arguments.no_sandbox {
        stages::programs::disable_sandbox();
    }
    if let Some(tag) = &arguments.tag {
        super::tag::check_tag(tag)?;
    }
    let pipeline = global.pipeline()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(cores, usize::from);
    // Asking git takes as long as planning: do both at once.
    let path = global.file.clone();
    let environment = std::thread::spawn(move || environment::capture(&path, jobs));
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.targets))?;
    let lock = locked::asked_for(global, &arguments.locked, &pipeline.name)?;
    let queue = arguments.executor.queue(&pipeline.executors)?;
    let remote = arguments.remote.open(global)?;

    let store = Store::open_with(&global.store_path(), arguments.db.as_deref())?;
    // What other machines have, they know.
    if queue.is_none() && remote.is_none() {
        secrets::check(&plan, &wanted, &store)?;
    }
    let file = global.file.file_name().unwrap_or_default();
    let environment = Arc::new(environment.join().expect("looking does not panic"));
    let run = store.begin_run(&NewRun {
        pipeline: pipeline.name.clone(),
        file: file.to_string_lossy().into_owned(),
        source: pipeline.sources.text(0).to_owned(),
        profile: global.profile.clone(),
        settings: serde_json::to_string(&global.set).expect("strings"),
        targets: arguments.targets.clone(),
        environment: environment.as_ref().clone(),
        tag: arguments.tag.clone(),
    })?;
    let reporter = reporter(global);
    if let Some(file_system) = store.network() {
        let note = format!(
            "the store lies on {file_system}: one process at a time may use it, and others are refused. \
             `--db DIR` keeps its database on a local disk, which several may use"
        );
        reporter.event(Event::Note(&note));
    }
    let data = arguments.places.home(&pipeline.data);
    let on_stop = || arguments.executor.on_stop(reporter.as_ref());
    let queue = match queue {
        Some(queue) => {
            let settings = (!arguments.no_sandbox, arguments.checkpoint_every);
            Some(queue.request(&store, &data, settings, arguments.jobs, &on_stop)?)
        }
        None => {
            note_unlimited(&plan, &wanted, reporter.as_ref());
            note_queued(&plan, &wanted, &store, reporter.as_ref());
            None
        }
    };
    let claims = read_claims(global, &plan, reporter.as_ref());
    let all = lock.is_some() || arguments.remote.whole;
    let objects = match all {
        true => wanted.clone(),
        false => objects(&plan, &wanted, &arguments.targets, claims.as_ref()),
    };
    let tally = scheduler::run(&scheduler::RunRequest {
        plan: &plan,
        wanted: &wanted,
        kinds: stages::find,
        store: &store,
        data: &data,
        run,
        environment,
        jobs,
        keep_going: arguments.keep_going,
        stop: &stop_flag(),
        checkpoints: &CheckpointTimes {
            every: Duration::from_secs(arguments.checkpoint_every),
            requests: checkpoint_requests(),
        },
        queue: queue.as_ref(),
        remote: remote.as_ref().map(|(_, request)| request),
        objects: &objects,
        reporter: reporter.as_ref(),
    });
    let (outcome, code) = match &tally {
        Err(_) => (RunOutcome::Failed, 1),
        Ok(tally) if tally.interrupted => (RunOutcome::Interrupted, 130),
        Ok(tally) if tally.failed > 0 => (RunOutcome::Failed, 1),
        Ok(_) => (RunOutcome::Ok, 0),
    };
    // The first error is the one to show, should this fail too.
    let ended = store.end_run(run, outcome);
    let tally = tally?;
    ended?;
    let counts = match &claims {
        Some(claims) if !tally.interrupted => {
            super::claims::after_run(global, &plan, claims, &store)
        }
        _ => Ok(None),
    };
    let odd = match tally.ran {
        0 => Vec::new(),
        _ => odd(&plan, &store, run).unwrap_or_default(),
    };
    let mut untaken = false;
    if let Some((remote, request)) = remote.filter(|_| !tally.interrupted) {
        untaken = arguments.remote.failed(&request);
        arguments
            .remote
            .push_after(global, &plan, &wanted, &store, &remote)?;
    }
    let lock = lock.filter(|_| !tally.interrupted);
    let compared = match &lock {
        Some(lock) => locked::compared(lock, &plan, &wanted, &store)?,
        None => Vec::new(),
    };
    let tell = || {
        lock.as_ref()
            .map(|lock| locked::tell(global, lock, &compared))
    };
    // For programs the end comes last, for people what they asked for.
    let early = if global.json { tell() } else { None };
    report_end(global, reporter.as_ref(), &tally, &counts, &odd);
    let confirmed = early.or_else(tell).transpose()?.unwrap_or(true);
    match code {
        0 if confirmed && !untaken => Ok(()),
        0 => Err(Exit::Code(1)),
        code => Err(Exit::Code(code)),
    }
}

/// Whose objects are to be here after the run: what was asked for, what nothing else reads, and what claims read. Others
/// that a remote has are fetched if a stage reads them.
fn objects(
    plan: &Plan<'_>,
    wanted: &[bool],
    targets: &[String],
    claims: Option<&Claims>,
) -> Vec<bool> {
    let mut objects = plan::ends(plan, wanted);
    if !targets.is_empty() {
        let named = find::chosen(plan, targets).unwrap_or_default();
        named.into_iter().for_each(|n| objects[n] = true);
    }
    let tables = claims.into_iter().flat_map(|claims| &claims.tables);
    for source in tables.flat_map(|table| &table.outputs) {
        objects[source.instance] = wanted[source.instance];
    }
    objects
}

/// Where progress goes: to a terminal, to a program, or nowhere.
fn reporter(global: &Global) -> Box<dyn Reporter> {
    match () {
        () if global.json => Box::new(Json),
        () if global.quiet => Box::new(Quiet),
        () if std::io::stderr().is_terminal() && std::io::stdout().is_terminal() => {
            Box::new(Bars::new())
        }
        () => Box::new(Lines),
    }
}

/// Says that what only a queue can see to is not seen to.
fn note_unlimited(plan: &Plan<'_>, wanted: &[bool], reporter: &dyn Reporter) {
    let mut stages = (0..wanted.len()).filter(|n| wanted[*n]);
    let unlimited = stages.find(|n| {
        let resources = plan.decl(*n).resources;
        resources.time > 0 || resources.gpus > 0
    });
    if let Some(n) = unlimited {
        let label = &plan.instances[n].label;
        let note = format!(
            "`time` and `gpus` in `resources` of `{label}`: nothing limits or reserves them here, which \
             `--executor slurm` and `command` do"
        );
        reporter.event(Event::Note(&note));
    }
}

/// Says that stages may be executed here although a queue has them.
fn note_queued(plan: &Plan<'_>, wanted: &[bool], store: &Store, reporter: &dyn Reporter) {
    let labels = (0..wanted.len()).filter(|n| wanted[*n]);
    let labels: HashSet<&str> = labels.map(|n| plan.instances[n].label.as_str()).collect();
    let mut queued = queued(store);
    // What was taken already is removed by the driver that ends in peace.
    queued.retain(|key, _| !matches!(store.lookup(key), Ok(Some(_))));
    let queued = queued.into_values();
    let mut queued: Vec<String> = queued.map(|attempt| attempt.stage).collect();
    queued.retain(|stage| labels.contains(stage.as_str()));
    queued.sort();
    if let Some(first) = queued.first() {
        let count = plural(queued.len(), "job");
        let note = format!(
            "{count} of an earlier run may still be in a queue (`{first}`): this run does not wait for them; with \
             `--executor` it takes them over"
        );
        reporter.event(Event::Note(&note));
    }
}

/// The claims, read before the run so that a mistake in them is not found after hours.
fn read_claims(global: &Global, plan: &Plan<'_>, reporter: &dyn Reporter) -> Option<Claims> {
    match claims::path(&global.file, plan).map(|path| claims::read(&path, plan))? {
        Ok(claims) => Some(claims),
        Err(_) => {
            let claims = global.command("claims");
            let note = format!("the claims cannot be evaluated: `{claims}` says why");
            reporter.event(Event::Note(&note));
            None
        }
    }
}

/// Claims per verdict; none if they cannot all be judged; or why they cannot be.
type ClaimCounts = Result<Option<BTreeMap<&'static str, usize>>, String>;

/// What is printed after a run: odd results, the tally, the claims.
fn report_end(
    global: &Global,
    reporter: &dyn Reporter,
    tally: &Tally,
    counts: &ClaimCounts,
    odd: &[String],
) {
    // For programs the end comes last.
    if let (Ok(Some(counts)), true) = (counts, global.json) {
        reporter.event(Event::Claims(counts));
    }
    let shown = if global.json { odd.len() } else { SHOWN };
    for note in odd.iter().take(shown) {
        reporter.event(Event::Note(note));
    }
    if let more @ 1.. = odd.len().saturating_sub(shown) {
        let report = global.command("report");
        let note = format!("{more} more like these: `{report}` has them all");
        reporter.event(Event::Note(&note));
    }
    reporter.event(Event::Done(tally));
    match counts {
        Ok(Some(counts)) if !global.json => reporter.event(Event::Claims(counts)),
        Err(why) => {
            let first = why.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("error: ");
            let note = format!("the claims cannot be judged (ablate claims): {first}");
            reporter.event(Event::Note(&note));
        }
        _ => {}
    }
}

/// Notes on odd results that people are shown after a run.
const SHOWN: usize = 10;

/// Instances that are checked after a run: the report covers more.
const LOOKED_AT: usize = 1_000;

/// What is odd about the results that this run made.
fn odd(plan: &Plan<'_>, store: &Store, run: RunId) -> Result<Vec<String>, store::Error> {
    let concerned = (0..plan.instances.len())
        .filter(|n| degenerate::concerns(plan.decl(*n).kind.role()))
        .map(|n| plan.instances[n].label.as_str());
    let concerned: HashSet<&str> = concerned.collect();
    if concerned.is_empty() || concerned.len() > LOOKED_AT {
        return Ok(Vec::new());
    }
    let mut pieces = Vec::new();
    for used in store.uses(run)? {
        if used.status != Status::Ran || !concerned.contains(used.instance.as_str()) {
            continue;
        }
        if let Some(execution) = used.execution.map(|id| store.execution(id)).transpose()? {
            let execution = execution.as_ref();
            pieces.extend(execution.and_then(|it| Piece::new(&used.instance, it)));
        }
    }
    Ok(degenerate::notes(store, &pieces))
}
