//! A judged claim in words, the same on a terminal and on a page.

use super::judge::{Judged, Verdict};
use super::numbers::short;
use crate::amounts::thousands;

impl Judged<'_> {
    /// The verdict; before it is graded, only whether it holds.
    pub fn word(&self) -> &'static str {
        match (self.holds, &self.evidence) {
            (Some(true), None) => "holds",
            (Some(false), None) => "does not hold",
            _ => self.verdict.name(),
        }
    }

    /// Our numbers: each with its name and its 95% interval.
    pub fn ours(&self) -> Vec<(String, String)> {
        let intervals = self.evidence.as_ref().map(|evidence| &evidence.intervals);
        let each = self.numbers.iter().map(|number| {
            let interval = intervals.and_then(|all| all.get(&number.name));
            let shown = match interval {
                Some(at) => format!("{} [{}, {}]", number.shown, short(at.low), short(at.high)),
                None => number.shown.clone(),
            };
            (number.name.clone(), shown)
        });
        each.collect()
    }

    /// How sure it is: the share of draws, what they vary, the executions, and the seeds on their own.
    pub fn draws(&self) -> Option<String> {
        let evidence = self.evidence.as_ref()?;
        let over = match (&evidence.items, &evidence.seeds) {
            (Some(_), Some(_)) => "items and seeds",
            (Some(_), None) => "items",
            (None, Some(_)) => "seeds",
            (None, None) => return None,
        };
        let (share, of) = (evidence.draws.percent(), thousands(evidence.draws.of));
        let mut words = match self.holds {
            Some(_) => format!("holds in {share} of {of} draws over {over}"),
            None => format!("95% intervals from {of} draws over {over}"),
        };
        match (self.holds.and(evidence.of_seeds), evidence.executions) {
            (Some((holds, of)), _) => words += &format!(", and in {holds} of {of} seeds"),
            (None, Some(1)) => words += "; one execution",
            (None, Some(k)) => words += &format!("; {k} executions"),
            (None, None) => {}
        }
        Some(words)
    }

    /// What the paper has: its words, or its numbers with whether they are inside our intervals.
    pub fn paper(&self) -> Option<String> {
        let intervals = self.evidence.as_ref().map(|evidence| &evidence.intervals);
        let numbers = self.claim.paper_numbers.iter().map(|(name, number)| {
            let interval = intervals.and_then(|all| all.get(name));
            let place = match interval.map(|interval| interval.contains(*number)) {
                Some(true) => " (inside)",
                Some(false) => " (outside)",
                None => "",
            };
            format!("{name} {}{place}", short(*number))
        });
        let numbers: Vec<String> = numbers.collect();
        match numbers.is_empty() {
            true => self.claim.paper.clone(),
            false => Some(numbers.join(", ")),
        }
    }

    /// Why it was not judged, or is not sure.
    pub fn why(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::NotRun(why) | Verdict::Uncertain(why) => Some(why),
            _ => None,
        }
    }

    /// Whether it rests on trained models and does not say how many seeds it needs.
    pub fn lacks_seeds(&self) -> bool {
        let rests = self
            .evidence
            .as_ref()
            .is_some_and(|all| all.executions.is_some());
        self.holds.is_some() && rests && self.claim.seeds.is_none()
    }
}
