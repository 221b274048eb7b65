//! The pages, and which address has which.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use axum::{Router, middleware};
use serde::Deserialize;
use store::{Run, RunId, Store};
use tokio::net::TcpListener;

use super::site::{PageError, Site, beside, problem};
use super::{connections, guard, live, runs};
use crate::publish::certificate;
use crate::publish::report::compare::{self, Side};
use crate::publish::report::figures::spec;
use crate::publish::report::run_page::{ReportRequest, make};

/// Serves until the process ends. `listening` is called with the address.
pub fn serve(
    site: Site,
    at: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(at).await?;
        let at = listener.local_addr()?;
        listening(at);
        connections::serve(listener, router(Arc::new(site), at)).await
    })
}

fn router(site: Arc<Site>, at: SocketAddr) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/run/{run}", get(report))
        .route("/compare", get(compared))
        .route("/events", get(live::events))
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "Page not found.") })
        .with_state(site)
        .layer(middleware::from_fn_with_state(at, guard::guard))
}

/// The largest page that is answered with, in bytes. Larger ones are for files.
const LARGEST: usize = 64 << 20;

/// A page that is not too large to be held for everybody who may ask for it at once.
fn within_size(html: String, run: RunId) -> Result<Html<String>, PageError> {
    match html.len() > LARGEST {
        false => Ok(Html(html)),
        true => Err(PageError::TooLarge(format!(
            "This page has {} MB, and {} are the most that are served: `ablate report --run {run}` \
             writes it to a file.",
            html.len() >> 20,
            LARGEST >> 20
        ))),
    }
}

async fn list(State(site): State<Arc<Site>>) -> Result<Html<String>, PageError> {
    beside(site, |_, store| Ok(Html(runs::page(store)?))).await
}

/// Which part of a large graph is requested.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    part: usize,
}

async fn report(
    State(site): State<Arc<Site>>,
    Path(run): Path<String>,
    Query(Part { part }): Query<Part>,
) -> Result<Html<String>, PageError> {
    beside(site, move |site, store| {
        let run = find(store, &run)?;
        let id = run.id;
        let figures = spec::read(&site.file).map_err(|problems| {
            PageError::Wrong(crate::diagnostic::render(&problems.sources, &problems.list))
        })?;
        let request = ReportRequest {
            claims: (site.judge)(&site.file, store, &run),
            ablations: (site.ablations)(&site.file, store, &run),
            worlds: (site.worlds)(&site.file, store, &run),
            certificates: certificate::beside(&site.file),
            run,
            figures: &figures,
            examples: site.examples,
            part: Some(part),
            served: true,
        };
        within_size(make(store, request)?.html, id)
    })
    .await
}

/// The two runs to compare.
#[derive(Deserialize)]
struct Pair {
    old: String,
    new: String,
}

async fn compared(
    State(site): State<Arc<Site>>,
    Query(pair): Query<Pair>,
) -> Result<Html<String>, PageError> {
    beside(site, move |site, store| {
        let side = |name: &str| {
            let run = find(store, name)?;
            let claims = (site.judge)(&site.file, store, &run);
            Ok::<Side, PageError>(Side { run, claims })
        };
        let (old, new) = (side(&pair.old)?, side(&pair.new)?);
        let run = new.run.id;
        let compared = compare::compare(store, old, new)?;
        within_size(compare::html(&compared, true), run)
    })
    .await
}

fn find(store: &Store, name: &str) -> Result<Run, PageError> {
    let none = || PageError::NoRun(name.to_owned());
    let number = name.parse().map_err(|_| none())?;
    let run = store.run(RunId(number))?.ok_or_else(none)?;
    match store.altered_run(&run)? {
        None => Ok(run),
        Some(why) => Err(PageError::Wrong(format!(
            "The record of run {number} is altered ({why})."
        ))),
    }
}
