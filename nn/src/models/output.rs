//! What a forward pass leaves on the tape for objectives and victims to find.

use crate::autodiff::Var;
use crate::batch::Side;
use crate::layers::States;

/// What a forward pass left on the tape.
#[derive(Clone, Debug)]
pub struct Output {
    /// (1, items, classes), or (time, items, vocabulary) for sequence models.
    pub logits: Var,
    /// The vectors that were read, where input gradients arrive.
    pub input: Var,
    /// Recurrent layers in order.
    pub states: Vec<States>,
    /// Attention weights, one value per layer, each with its number of heads.
    pub attention: Vec<Attention>,
    /// What the classifier head reads, (1, items, dim).
    pub sentence: Option<Var>,
    /// Hidden vectors after each layer, where a model has them at every step.
    pub hidden: Vec<Hidden>,
}

impl Output {
    /// Logits and input, and nothing else to look at.
    pub(super) fn new(input: Var, logits: Var) -> Self {
        Output {
            logits,
            input,
            states: Vec::new(),
            attention: Vec::new(),
            sentence: None,
            hidden: Vec::new(),
        }
    }
}

/// Vectors at every step, on the tape.
#[derive(Clone, Copy, Debug)]
pub struct Hidden {
    /// (time, items, dim)
    pub rows: Var,
    /// Whose steps they are.
    pub side: Side,
}

impl Hidden {
    /// Of the sequence that was read.
    pub(crate) fn source(rows: Var) -> Self {
        Hidden {
            rows,
            side: Side::Source,
        }
    }

    /// Of the sequence that is generated.
    pub(crate) fn target(rows: Var) -> Self {
        Hidden {
            rows,
            side: Side::Target,
        }
    }
}

/// Attention weights on the tape.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// The numbers.
    pub weights: Var,
    /// How they are laid out.
    pub kind: AttentionKind,
    /// The positions that attend.
    pub queries: Side,
    /// The positions that are attended to.
    pub keys: Side,
}

impl Attention {
    /// Of the sequence that was read, to itself.
    pub(crate) fn within(weights: Var, kind: AttentionKind) -> Self {
        Attention {
            weights,
            kind,
            queries: Side::Source,
            keys: Side::Source,
        }
    }
}

/// The layout of attention weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionKind {
    /// (time, items, 1): one weight per step.
    Pool,
    /// (heads * queries, items, keys), row `(head * queries + query) * items + item`.
    Heads(usize),
}
