//! What is served, why a page cannot be, and work beside the loop that answers.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use store::{Run, Store};
use tokio::sync::Semaphore;

use crate::inspect::ablation::Ablation;
use crate::publish::multiverse::ClaimAcross;
use crate::publish::report::page;
use crate::publish::report::summary::ClaimRow;

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
    /// The ablations of a run that have been compared.
    pub ablations: fn(&std::path::Path, &Store, &Run) -> Vec<Ablation>,
    /// What claims say in the worlds of `[choices]` that have been run.
    pub worlds: fn(&std::path::Path, &Store, &Run) -> Vec<ClaimAcross>,
}

/// Why a page cannot be shown.
pub(super) enum PageError {
    /// The store fails, or is not there.
    Store(store::Error),
    /// There is no such run.
    NoRun(String),
    /// A file beside the pipeline is wrong.
    Wrong(String),
    /// The page is too large to be served.
    TooLarge(String),
}

impl From<store::Error> for PageError {
    fn from(error: store::Error) -> PageError {
        PageError::Store(error)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            PageError::Store(error) => {
                problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
            }
            PageError::NoRun(name) => problem(StatusCode::NOT_FOUND, &format!("No run {name}.")),
            PageError::Wrong(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why),
            PageError::TooLarge(why) => problem(StatusCode::PAYLOAD_TOO_LARGE, &why),
        }
    }
}

/// An error page.
pub(super) fn problem(status: StatusCode, why: &str) -> Response {
    let parts = minijinja::context! { title => "ablate", why => why };
    (
        status,
        Html(page::render("problem.html", "{}", true, parts)),
    )
        .into_response()
}

/// How many pages are made at once: each may take as much memory as the results that it shows.
static PAGES: Semaphore = Semaphore::const_new(2);

/// Does what takes a while beside the loop that answers requests.
pub(super) async fn beside<T: Send + 'static>(
    site: Arc<Site>,
    work: impl FnOnce(&Site, &Store) -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    // Held until the work is done, and not only until its reader has gone away.
    let turn = PAGES.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let root = site.store.clone();
        let store = Store::open_existing(&root)?.ok_or(store::Error::NoStore { root })?;
        work(&site, &store)
    });
    done.await
        .unwrap_or_else(|_| Err(PageError::Wrong("this page could not be made".to_owned())))
}
