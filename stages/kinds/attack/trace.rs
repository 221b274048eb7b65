//! What an attack did to one row, and what it cost.

use nn::batch::Sequence;
use serde::{Deserialize, Serialize};

use super::context::Item;
use super::edit::Edit;
use super::goals::{Answer, Goal};
use crate::Failure;
use crate::tables::examples::{BACKWARD, Counters, FORWARD};

/// Passes through the model.
pub fn passes(forward: u64, backward: u64) -> Counters {
    Counters::from([(FORWARD, forward), (BACKWARD, backward)])
}

/// Attacks the items that the model classifies correctly, one after the other, and leaves the others alone.
pub fn each_correct(
    items: &[Item<'_>],
    attack: impl Fn(&Item<'_>) -> Result<Trace, Failure>,
) -> Result<Vec<Trace>, Failure> {
    let one = |item: &Item<'_>| match item.right() {
        true => attack(item),
        false => Ok(Trace::untouched(item)),
    };
    items.iter().map(one).collect()
}

/// What an attack did to one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What the model reads now.
    pub input: Sequence,
    /// What was changed, in order. Attacks that move all numbers of a signal list none.
    pub edits: Vec<Edit>,
    /// Whether the attack tried at all.
    pub attacked: bool,
    /// What it counted.
    pub counters: Counters,
    /// The first text that reached the goal with each lower confidence, on the way.
    pub firsts: Vec<First>,
    /// What was expected of single edits, and what they did.
    pub probes: Vec<Probe>,
}

/// What was expected of an edit of the row as it came, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Which of the random ones; none for the one that was expected to do most.
    pub number: Option<usize>,
    /// The edit.
    pub edit: Edit,
    /// The change of the loss that was expected.
    pub estimate: f64,
    /// The true one.
    pub change: f64,
}

/// The first text that reached the goal with some confidence.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    /// The confidence.
    pub confidence: f32,
    /// What the model reads then.
    pub input: Sequence,
    /// What was changed until then.
    pub edits: Vec<Edit>,
    /// What was counted until then.
    pub counters: Counters,
}

/// Confidences below the one that is wanted, and which of them were reached.
#[derive(Clone, Debug)]
pub struct Milestones {
    open: Vec<Goal>,
    /// Those that were reached, from the lowest upwards.
    pub reached: Vec<First>,
}

impl Milestones {
    /// On the way to a goal.
    pub fn of(goal: &Goal) -> Milestones {
        Milestones {
            open: goal.milestones(),
            reached: Vec::new(),
        }
    }

    /// Looks at a text that the model was asked about, in the order of asking.
    pub fn see(&mut self, answer: Answer<'_>, trace: &Trace, counters: &Counters) {
        // Who is sure enough for a confidence is sure enough for all lower ones.
        while self.open.first().is_some_and(|goal| goal.reached(answer)) {
            let goal = self.open.remove(0);
            self.reached.push(First {
                confidence: goal.confidence(),
                input: trace.input.clone(),
                edits: trace.edits.clone(),
                counters: counters.clone(),
            });
        }
    }
}

impl Trace {
    /// Nothing was done.
    pub fn untouched(item: &Item<'_>) -> Trace {
        Trace {
            input: item.input.clone(),
            edits: Vec::new(),
            attacked: false,
            counters: Counters::default(),
            firsts: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// Edits that were chosen without asking the model.
    pub fn of(item: &Item<'_>, edits: Vec<Edit>) -> Result<Trace, Failure> {
        let mut trace = Trace {
            attacked: true,
            ..Trace::untouched(item)
        };
        for edit in edits {
            trace.edit(edit)?;
        }
        Ok(trace)
    }

    /// Makes one more edit.
    pub fn edit(&mut self, edit: Edit) -> Result<(), Failure> {
        edit.apply(&mut self.input)?;
        self.edits.push(edit);
        Ok(())
    }

    /// Counts more of something.
    pub fn count(&mut self, name: &'static str, more: u64) {
        *self.counters.entry(name).or_default() += more;
    }
}
