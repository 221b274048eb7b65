//! The same pages over HTTP, for this machine: a list of runs, each run's report, two runs
//! compared, and how a run that is under way gets on. Read-only.
//!
//! The store is opened for each request and closed after it, so that a page that is left open
//! does not keep `gc` from its work.

mod connections;
mod guard;
mod live;
mod pages;
mod runs;
mod site;

pub use pages::serve;
pub use site::Site;
