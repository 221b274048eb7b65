//! Queries of a model: the cost that papers report.

/// Passes made, one for each item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Forward passes.
    pub forwards: u64,
    /// Backward passes; each also made a forward pass, which is counted there.
    pub backwards: u64,
}
