//! The same pages over HTTP, for this machine: a list of runs, each run's report, two runs
//! compared, and how a run that is under way gets on. Read-only.
//!
//! The store is opened for each request and closed after it, so that a page that is left open
//! does not keep `gc` from its work.

mod connections;
mod guard;
mod live;
mod runs;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use serde::Deserialize;
use store::{Run, RunId, Store};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::compare::{self, Side};
use super::figures::asked;
use super::{ClaimRow, Request, page};

/// What is served.
pub struct Site {
    /// The store's folder.
    pub store: PathBuf,
    /// The pipeline file, for claims, figures and how much there is to do.
    pub file: PathBuf,
    /// The most examples in a page.
    pub examples: usize,
    /// Judges the claims of a run.
    pub judge: fn(&std::path::Path, &Store, &Run) -> Result<Vec<ClaimRow>, String>,
}

/// Serves until the process ends. Says where once it listens.
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
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "There is no such page.") })
        .with_state(site)
        .layer(middleware::from_fn_with_state(at, guard::guard))
}

/// Why a page cannot be shown.
enum Trouble {
    /// The store fails, or is not there.
    Store(store::Error),
    /// There is no such run.
    NoRun(String),
    /// A file beside the pipeline is wrong.
    Wrong(String),
    /// The page is too large to be served.
    TooLarge(String),
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Trouble {
        Trouble::Store(error)
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        match self {
            Trouble::Store(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            Trouble::NoRun(name) => {
                problem(StatusCode::NOT_FOUND, &format!("There is no run {name}."))
            }
            Trouble::Wrong(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why),
            Trouble::TooLarge(why) => problem(StatusCode::PAYLOAD_TOO_LARGE, &why),
        }
    }
}

fn problem(status: StatusCode, why: &str) -> Response {
    let parts = minijinja::context! { title => "ablate", why => why };
    (
        status,
        Html(page::render("problem.html", "{}", true, parts)),
    )
        .into_response()
}

/// How many pages are made at once: each may take as much memory as the results that it shows.
static PAGES: Semaphore = Semaphore::const_new(2);

/// The largest page that is answered with, in bytes. Larger ones are for files.
const LARGEST: usize = 64 << 20;

/// A page that is not too large to be held for everybody who may ask for it at once.
fn within_size(html: String, run: RunId) -> Result<Html<String>, Trouble> {
    match html.len() > LARGEST {
        false => Ok(Html(html)),
        true => Err(Trouble::TooLarge(format!(
            "This page has {} MB, and {} are the most that are served: `ablate report --run {run}` \
             writes it to a file.",
            html.len() >> 20,
            LARGEST >> 20
        ))),
    }
}

/// Does what takes a while beside the loop that answers requests.
async fn beside<T: Send + 'static>(
    site: Arc<Site>,
    work: impl FnOnce(&Site, &Store) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    // Held until the work is done, and not only until its reader has gone away.
    let turn = PAGES.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let root = site.store.clone();
        let store = Store::open_existing(&root)?.ok_or(store::Error::NoStore { root })?;
        work(&site, &store)
    });
    done.await
        .unwrap_or_else(|_| Err(Trouble::Wrong("this page could not be made".to_owned())))
}

async fn list(State(site): State<Arc<Site>>) -> Result<Html<String>, Trouble> {
    beside(site, |_, store| Ok(Html(runs::page(store)?))).await
}

/// Which part of a large graph is asked for.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    part: usize,
}

async fn report(
    State(site): State<Arc<Site>>,
    Path(run): Path<String>,
    Query(Part { part }): Query<Part>,
) -> Result<Html<String>, Trouble> {
    beside(site, move |site, store| {
        let run = find(store, &run)?;
        let id = run.id;
        let figures = asked::read(&site.file).map_err(|problems| {
            Trouble::Wrong(crate::diagnostic::render(&problems.sources, &problems.list))
        })?;
        let request = Request {
            claims: (site.judge)(&site.file, store, &run),
            run,
            figures: &figures,
            examples: site.examples,
            part: Some(part),
            served: true,
        };
        within_size(super::make(store, request)?.html, id)
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
) -> Result<Html<String>, Trouble> {
    beside(site, move |site, store| {
        let side = |name: &str| {
            let run = find(store, name)?;
            let claims = (site.judge)(&site.file, store, &run);
            Ok::<Side, Trouble>(Side { run, claims })
        };
        let (old, new) = (side(&pair.old)?, side(&pair.new)?);
        let run = new.run.id;
        let compared = compare::compare(store, old, new)?;
        within_size(compare::html(&compared, true), run)
    })
    .await
}

fn find(store: &Store, name: &str) -> Result<Run, Trouble> {
    let none = || Trouble::NoRun(name.to_owned());
    let number = name.parse().map_err(|_| none())?;
    let run = store.run(RunId(number))?.ok_or_else(none)?;
    match store.altered_run(&run)? {
        None => Ok(run),
        Some(why) => Err(Trouble::Wrong(format!(
            "The record of run {number} is altered ({why})."
        ))),
    }
}
