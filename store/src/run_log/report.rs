//! What a check of the whole log found.

use serde::Serialize;

use crate::digest::Digest;

/// How the log is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// How many entries it has.
    pub entries: u64,
    /// The last seal: a copy kept elsewhere shows whether anything before it was changed.
    pub head: Option<Digest>,
    /// What does not fit, in order.
    pub broken: Vec<String>,
    /// What does not fit and somebody has noted before.
    pub noted: Vec<String>,
    /// What a note of each of `broken` would say.
    #[serde(skip)]
    pub(crate) news: Vec<String>,
    /// Executions that are older than the log.
    pub before: u64,
}
