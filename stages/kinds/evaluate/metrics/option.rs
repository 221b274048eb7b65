//! What a cell may set beside its metric.

/// An integer that a cell may set beside its metric.
pub struct MetricOption {
    /// Its key in the cell.
    pub name: &'static str,
    /// Its value if the cell does not set it.
    pub default: i64,
    /// Its smallest value.
    pub least: i64,
    /// Its largest value.
    pub most: i64,
    /// What it is.
    pub help: &'static str,
}
