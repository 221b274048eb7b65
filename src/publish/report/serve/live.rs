//! How the newest run gets on, as server-sent events: read off the provenance, where a run
//! writes what it has done while it goes on. Another process may be running it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use store::{Run, RunId, Status, Store};

use super::site::{PageError, Site, beside};
use crate::config::{self, PipelineRequest};
use crate::environment::utc as time;
use crate::inspect::queued::{QueuedState, queued};
use crate::plan;
use crate::publish::report::summary::{invocation, outcome};
use crate::results::find;

/// How often the provenance is looked at.
const EVERY: Duration = Duration::from_millis(300);
/// How many finished stages are named.
const RECENT: usize = 8;
/// How many running jobs are named.
const JOBS: usize = 20;

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Progress {
    run: RunId,
    pipeline: String,
    invocation: String,
    started: String,
    outcome: &'static str,
    ran: usize,
    cached: usize,
    failed: usize,
    skipped: usize,
    /// How many stages the run's targets have, if the pipeline file is still there.
    total: Option<usize>,
    /// What was done last.
    recent: Vec<String>,
    /// What has been handed to a queue and not taken back yet.
    queue: Option<Queue>,
}

/// Jobs of a run that other machines execute.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Queue {
    /// Submitted, and not started.
    waiting: usize,
    /// Ended; their folders are removed with the run.
    done: usize,
    /// How many run, and the first of them: stage, machine, since when.
    running: usize,
    jobs: Vec<[String; 3]>,
}

/// What the last look saw.
struct Seen {
    site: Arc<Site>,
    last: Option<Progress>,
    total: Option<(RunId, Option<usize>)>,
    first: bool,
}

/// An event whenever something has changed.
pub async fn events(
    State(site): State<Arc<Site>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let seen = Seen {
        site,
        last: None,
        total: None,
        first: true,
    };
    let changes = stream::unfold(seen, |mut seen| async move {
        loop {
            if !seen.first {
                tokio::time::sleep(EVERY).await;
            }
            seen.first = false;
            let known = seen.total;
            let looked = beside(seen.site.clone(), move |site, store| {
                look(site, store, known)
            })
            .await;
            // A store that is not there yet, or busy, may be there the next time.
            let Ok(Some((progress, total))) = looked else {
                continue;
            };
            seen.total = Some((progress.run, total));
            if seen.last.as_ref() != Some(&progress) {
                let event =
                    Event::default().data(serde_json::to_string(&progress).expect("plain values"));
                seen.last = Some(progress);
                return Some((Ok(event), seen));
            }
        }
    });
    Sse::new(changes).keep_alive(KeepAlive::default())
}

type Looked = Option<(Progress, Option<usize>)>;

fn look(
    site: &Site,
    store: &Store,
    known: Option<(RunId, Option<usize>)>,
) -> Result<Looked, PageError> {
    let Some(run) = store.runs(1)?.into_iter().next() else {
        return Ok(None);
    };
    let total = match known {
        Some((id, total)) if id == run.id => total,
        _ => target_count(site, &run),
    };
    let uses = store.uses(run.id)?;
    let count = |status| uses.iter().filter(|used| used.status == status).count();
    // An execution's number grows, so the largest are the newest.
    let mut done: Vec<(i64, &str)> = uses
        .iter()
        .filter(|used| matches!(used.status, Status::Ran | Status::Failed))
        .filter_map(|used| Some((used.execution?, used.instance.as_str())))
        .collect();
    done.sort_unstable();
    let recent = done.iter().rev().take(RECENT);
    let progress = Progress {
        run: run.id,
        invocation: invocation(&run),
        started: time(run.started),
        outcome: outcome(store, &run),
        ran: count(Status::Ran),
        cached: count(Status::Hit),
        failed: count(Status::Failed),
        skipped: count(Status::Skipped),
        total,
        recent: recent.map(|(_, label)| (*label).to_owned()).collect(),
        queue: queue(store),
        pipeline: run.pipeline,
    };
    Ok(Some((progress, total)))
}

/// What a queue has of this store; none if nothing was handed to one.
fn queue(store: &Store) -> Option<Queue> {
    let attempts = queued(store);
    if attempts.is_empty() {
        return None;
    }
    let mut queue = Queue::default();
    let mut running: Vec<(i64, [String; 3])> = Vec::new();
    for attempt in attempts.into_values() {
        match attempt.state {
            QueuedState::Waiting(_) => queue.waiting += 1,
            QueuedState::Done => queue.done += 1,
            QueuedState::Running { node, since } => {
                running.push((since, [attempt.stage, node, time(since)]));
            }
        }
    }
    running.sort();
    queue.running = running.len();
    queue.jobs = running.into_iter().take(JOBS).map(|(_, job)| job).collect();
    Some(queue)
}

/// How many instances the targets of a run have in the current pipeline file.
fn target_count(site: &Site, run: &Run) -> Option<usize> {
    // Another pipeline's run may be the newest of the store: this file does not describe it.
    if site.file.file_name()?.to_string_lossy() != run.file {
        return None;
    }
    let request = PipelineRequest {
        file: site.file.clone(),
        profile: run.profile.clone(),
        sets: serde_json::from_str(&run.settings).unwrap_or_default(),
    };
    let pipeline = config::read(&request).ok()?;
    let plan = plan::build(&pipeline).ok()?;
    let wanted = find::wanted(&plan, &run.targets).ok()?;
    Some(wanted.into_iter().filter(|wanted| *wanted).count())
}
