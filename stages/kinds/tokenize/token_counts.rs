//! Which tokens there are, and how often each was seen.

use super::interner::Interner;

/// All tokens of all readers.
pub struct TokenCounts {
    /// The tokens by their numbers here.
    pub tokens: Interner,
    /// How often each token was kept in the training split.
    pub counts: Vec<u64>,
    /// For each reader what its numbers are here.
    pub places: Vec<Vec<u32>>,
}
