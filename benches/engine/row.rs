//! What was measured of one tool in one case, and the figures that are made of it.

use std::fmt;
use std::time::Duration;

use crate::dag::Shape;
use crate::measure::Sample;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything is made.
    Cold,
    /// Everything is there already.
    Noop,
    /// The dial was turned: what would run?
    PlanChange,
    /// The dial was turned: run.
    Change,
    /// The dial was turned back: run.
    Revert,
    /// Nothing is made yet: what would run?
    PlanCold,
}

/// A step on a DAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Of the DAG.
    pub shape: Shape,
    /// Of the DAG.
    pub size: usize,
    /// What is measured.
    pub step: Step,
}

/// One tool in one case.
pub struct Row {
    /// The case.
    pub case: Case,
    /// The tool's name.
    pub tool: &'static str,
    /// One for each round.
    pub samples: Vec<Sample>,
    /// How many stages were executed, if any could be.
    pub ran: Option<usize>,
    /// Why there are no figures.
    pub trouble: Option<String>,
}

impl Row {
    /// The median time, with the least and the most.
    pub fn wall(&self) -> Option<(Duration, Duration, Duration)> {
        let walls = self.sorted(|sample| sample.wall);
        Some((median(&walls)?, *walls.first()?, *walls.last()?))
    }

    /// The median CPU time.
    pub fn cpu(&self) -> Option<Duration> {
        median(&self.sorted(|sample| sample.cpu))
    }

    /// The most memory in any round, in bytes.
    pub fn peak(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.peak).max()
    }

    fn sorted(&self, figure: impl Fn(&Sample) -> Duration) -> Vec<Duration> {
        let mut figures: Vec<Duration> = self.samples.iter().map(figure).collect();
        figures.sort();
        figures
    }
}

/// The middle one, or the lower of the two in the middle.
fn median(sorted: &[Duration]) -> Option<Duration> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.step {
            Step::Cold => "cold",
            Step::Noop => "no-op",
            Step::PlanChange => "one change, plan",
            Step::Change => "one change",
            Step::Revert => "changed back",
            Step::PlanCold => "plan",
        };
        write!(f, "{} of {}, {step}", self.shape, grouped(self.size))
    }
}

/// `100000` as `100,000`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
