//! What an attack did to one row, and what it cost.

use nn::batch::Sequence;

use super::context::Item;
use super::edit::Edit;
use crate::Failure;
use crate::tables::examples::{BACKWARD, Counters, FORWARD};

/// Passes through the model.
pub fn passes(forward: u64, backward: u64) -> Counters {
    Counters::from([(FORWARD, forward), (BACKWARD, backward)])
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
}

impl Trace {
    /// Nothing was done.
    pub fn untouched(item: &Item<'_>) -> Trace {
        Trace {
            input: item.input.clone(),
            edits: Vec::new(),
            attacked: false,
            counters: Counters::default(),
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
