//! What a kind is to those who show, compare and check results, so that they need not know kinds by name.
//! Decides no result.

/// The part that a kind plays in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Loads data: class names and the shape of its items are found here.
    Data,
    /// Makes token ids of texts: the words behind ids are found here.
    Tokenizer,
    /// Trains a model.
    Model,
    /// Attacks a model.
    Attack,
    /// Gives the numbers that people write about.
    Results,
    /// Gives values that were typed by hand.
    Typed,
    /// Computes tables by a query.
    Query,
    /// Runs a program of the user.
    Program,
    /// None of these.
    Other,
}
