//! The list of runs.

use serde::Serialize;
use store::{Error, Status, Store};

use crate::environment::utc as time;
use crate::publish::report::page;
use crate::publish::report::summary::{invocation, outcome};

/// A run in a line.
#[derive(Serialize)]
struct Line {
    id: i64,
    started: String,
    outcome: &'static str,
    pipeline: String,
    invocation: String,
    tags: Vec<String>,
    ran: usize,
    cached: usize,
    failed: usize,
}

/// How many runs are listed.
const MOST: usize = 200;

/// The page with the newest runs, the newest first.
pub fn page(store: &Store) -> Result<String, Error> {
    let mut lines = Vec::new();
    for run in store.runs(MOST)? {
        let uses = store.uses(run.id)?;
        let count = |status| uses.iter().filter(|used| used.status == status).count();
        lines.push(Line {
            id: run.id.0,
            started: time(run.started),
            outcome: outcome(store, &run),
            invocation: invocation(&run),
            ran: count(Status::Ran),
            cached: count(Status::Hit),
            failed: count(Status::Failed),
            pipeline: run.pipeline,
            tags: run.tags,
        });
    }
    let parts = minijinja::context! { title => "Runs", runs => page::value(lines) };
    Ok(page::render("runs.html", "{}", true, parts))
}
