//! What an attack wants of the model's answer.

use nn::numeric::argmax;
use nn::objectives::Objective;

/// The answer that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Any class but this one.
    Leave(u32),
}

impl Goal {
    /// Whether the model's logits are as wanted.
    pub fn reached(self, logits: &[f32]) -> bool {
        match self {
            Goal::Leave(class) => argmax(logits) != class as usize,
        }
    }

    /// What the search makes smaller: the logit of the class to leave.
    pub fn objective(self) -> Objective {
        match self {
            Goal::Leave(class) => Objective::Logit(class as usize),
        }
    }

    /// Goals with the same objective can share a gradient's batch.
    pub fn class(self) -> u32 {
        match self {
            Goal::Leave(class) => class,
        }
    }
}
