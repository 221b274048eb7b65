//! The run log: every run, execution, end, tag and acceptance in the order of recording, each
//! entry sealed together with the one before. Whoever changes or removes a row afterwards breaks
//! a seal. It shows tampering to those who know the last seal; it does not prevent it.
//! [`contents`] says what is sealed, [`mod@check`] tests all of it, and [`row`] one execution.

mod altered;
mod check;
pub(crate) mod contents;
mod entries;
mod entry;
mod fault;
mod related_rows;
mod report;
mod row;
mod sealed;
mod unlogged;

pub(crate) use check::check;
pub(crate) use entry::{EntryKind, LogWriter};
pub use report::LogReport;
pub(crate) use row::{altered, newest, one};
pub(crate) use sealed::is_sealed;
