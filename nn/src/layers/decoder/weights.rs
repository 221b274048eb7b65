//! The weights of a decoder with attention, and what it starts from.

use crate::autodiff::{Span, Var};
use crate::layers::dense::Dense;
use crate::layers::lstm::Lstm;

/// Places of the weights.
#[derive(Clone, Copy, Debug)]
pub struct DecoderWeights {
    /// The cell; its input weights are for `y` only.
    pub cell: Lstm,
    /// (m, 4 units)
    pub context: Span,
    /// Keys of the memory, computed once per sequence.
    pub keys: Dense,
    /// (units, size) and its bias.
    pub query: Dense,
    /// (1, size)
    pub score: Span,
}

/// What a decoder starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// (1, batch, units)
    pub h: Var,
    /// (1, batch, units)
    pub c: Var,
    /// (1, batch, m); zero when there is none.
    pub context: Option<Var>,
}
