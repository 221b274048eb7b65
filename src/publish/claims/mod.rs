//! What a paper claims, as data: a query over result tables that says whether it holds.
//!
//! [`read`](read::read) checks the file without any results; [`judge`](judge::judge) asks the
//! queries. A verdict is a finding: nothing here fails because a claim does not hold.

mod draw;
mod evidence;
mod grade;
mod graded;
mod judge;
mod numbers;
mod read;
mod words;

use serde::Serialize;

use crate::diagnostic::{Sources, Span};
use crate::plan::Source;

pub use evidence::{Evidence, Share};
pub use graded::{DRAWS, Drawing, grade_all, grade_kept};
pub use judge::{ClaimsError, Judged, Results, Verdict, count, judge};
pub use read::{path, read};

/// The checked contents of a file of claims.
#[derive(Debug)]
pub struct Claims {
    /// Where queries read from.
    pub tables: Vec<Table>,
    /// The claims in the order of the file.
    pub list: Vec<Claim>,
    /// What spans point into.
    pub sources: Sources,
}

/// A name that queries use for a result.
#[derive(Debug)]
pub struct Table {
    /// The name in queries.
    pub name: String,
    /// The outputs behind it: several instances become one table.
    pub outputs: Vec<Source>,
    /// Where it is written.
    pub span: Span,
}

/// One claim.
#[derive(Debug)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// How much it matters.
    pub level: Level,
    /// What is claimed, in words.
    pub text: String,
    /// What the paper has, in words.
    pub paper: Option<String>,
    /// What the paper has, in numbers: by the names of the query's columns.
    pub paper_numbers: Vec<(String, f64)>,
    /// The fewest executions it is judged on.
    pub seeds: Option<usize>,
    /// The query.
    pub query: String,
    /// Where the query is written.
    pub query_span: Span,
    /// The tables that it reads, by position.
    pub reads: Vec<usize>,
    /// The profiles in which it is judged; empty means all.
    pub profiles: Vec<String>,
}

/// How much a claim matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The paper's point.
    Must,
    /// Expected, not essential.
    Should,
    /// Numbers to look at; need not say whether anything holds.
    Info,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 3] = [Level::Must, Level::Should, Level::Info];

    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Should => "should",
            Level::Info => "info",
        }
    }
}

impl Claim {
    /// Whether it is judged in this profile.
    pub fn is_for(&self, profile: Option<&str>) -> bool {
        let named = |profile| self.profiles.iter().any(|known| known == profile);
        self.profiles.is_empty() || profile.is_some_and(named)
    }
}

/// A claim for tests.
#[cfg(test)]
fn test_claim(level: Level) -> Claim {
    Claim {
        id: "A-1".to_owned(),
        level,
        text: "Something holds.".to_owned(),
        paper: None,
        paper_numbers: Vec::new(),
        seeds: None,
        query: "SELECT true AS holds".to_owned(),
        query_span: Span {
            source: 0,
            start: 0,
            end: 0,
        },
        reads: Vec::new(),
        profiles: Vec::new(),
    }
}
