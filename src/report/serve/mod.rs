//! The same pages over HTTP, for this machine: a list of runs, each run's report, two runs
//! compared, and how a run that is under way gets on. Read-only.
//!
//! The store is opened for each request and closed after it, so that a page that is left open
//! does not keep `gc` from its work.

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
        axum::serve(listener, router(Arc::new(site), at)).await
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

/// Does what takes a while beside the loop that answers requests.
async fn beside<T: Send + 'static>(
    site: Arc<Site>,
    work: impl FnOnce(&Site, &Store) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(move || {
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

async fn report(
    State(site): State<Arc<Site>>,
    Path(run): Path<String>,
) -> Result<Html<String>, Trouble> {
    beside(site, move |site, store| {
        let run = find(store, &run)?;
        let figures = asked::read(&site.file).map_err(|problems| {
            Trouble::Wrong(crate::diagnostic::render(&problems.sources, &problems.list))
        })?;
        let request = Request {
            claims: (site.judge)(&site.file, store, &run),
            run,
            figures: &figures,
            examples: site.examples,
            served: true,
        };
        Ok(Html(super::make(store, request)?.html))
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
        let compared = compare::compare(store, side(&pair.old)?, side(&pair.new)?)?;
        Ok(Html(compare::html(&compared, true)))
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
