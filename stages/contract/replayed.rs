//! What came of recomputing what a result says of itself. Decides no result.

/// A result that was replayed.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// How many rows there are.
    pub rows: usize,
    /// How many of them are successes, as recomputed.
    pub successes: usize,
    /// How often the victim was asked.
    pub asked: usize,
    /// What was allowed, in words.
    pub budget: String,
    /// Where what is stored and what was recomputed differ, in the order of rows.
    pub disagreements: Vec<Disagreement>,
}

/// A cell that says something else than what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The row, counted from 0; none for the summary.
    pub row: Option<usize>,
    /// What names the row.
    pub id: String,
    /// The column, or the rule that is broken.
    pub column: String,
    /// What is stored.
    pub stored: String,
    /// What comes out.
    pub found: String,
}
