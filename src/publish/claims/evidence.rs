//! How sure a verdict is: what a claim's query says of the results as they might have been. Plain data, kept between
//! runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::statistics::Interval;

/// What draws say of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The draws of items and seeds together.
    pub draws: Share,
    /// Draws of items alone; none if the claim does not vary with them.
    pub items: Option<Share>,
    /// Draws of seeds alone; none if the claim does not vary with them.
    pub seeds: Option<Share>,
    /// How many executions the numbers have that it rests on: the fewest of any. None if another seed would
    /// change none of them.
    pub executions: Option<usize>,
    /// Of the seeds on their own, in how many it holds, and how many there are.
    pub of_seeds: Option<(usize, usize)>,
    /// A table that it reads, which varies with the seed in a way that draws do not know.
    pub unknown: Option<String>,
    /// The 95% intervals of its numbers, by name.
    pub intervals: BTreeMap<String, Interval>,
    /// Why draws could not be computed, if some could not.
    pub failure: Option<String>,
}

/// How often a claim holds in draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// In how many it holds.
    pub holds: usize,
    /// In how many the query says neither.
    pub undefined: usize,
    /// How many there are.
    pub of: usize,
}

impl Share {
    /// Counts what each draw said.
    pub fn of(answers: impl Iterator<Item = Option<bool>>) -> Share {
        let mut share = Share::default();
        for answer in answers {
            share.of += 1;
            share.holds += usize::from(answer == Some(true));
            share.undefined += usize::from(answer.is_none());
        }
        share
    }

    /// `99.8%`, and never 100% or 0% of what is not all or nothing.
    pub fn percent(&self) -> String {
        let percent = 100.0 * self.holds as f64 / self.of.max(1) as f64;
        match self.holds {
            0 => "0%".to_owned(),
            holds if holds == self.of => "100%".to_owned(),
            _ => format!("{:.1}%", percent.clamp(0.1, 99.9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_not_rounded_to_all_or_nothing() {
        let share = |holds, of| Share {
            holds,
            of,
            ..Share::default()
        };
        assert_eq!(share(1000, 1000).percent(), "100%");
        assert_eq!(share(9999, 10_000).percent(), "99.9%");
        assert_eq!(share(1, 10_000).percent(), "0.1%");
        assert_eq!(share(0, 1000).percent(), "0%");
        assert_eq!(share(873, 1000).percent(), "87.3%");
        let counted = Share::of([Some(true), Some(false), None].into_iter());
        assert_eq!((counted.holds, counted.undefined, counted.of), (1, 1, 3));
    }
}
