//! What the blocks of a round share: vectors as they were when it began, and what never changes.

use super::super::negatives::Negatives;
use super::super::settings::Settings;
use super::corpus::Corpus;

/// The vectors at the start of a round; blocks train copies of them.
pub struct Shared {
    /// The vectors of words, a row of `stride` numbers each.
    pub input: Vec<f32>,
    /// The vectors of contexts.
    pub output: Vec<f32>,
}

/// What is fixed for the whole training.
pub struct TrainingContext<'a> {
    /// The texts.
    pub corpus: &'a Corpus<'a>,
    /// The stage's parameters.
    pub settings: &'a Settings,
    /// The stage's seed.
    pub seed: u64,
    /// Draws negative samples.
    pub negatives: Negatives,
    /// How likely each word is kept.
    pub keep: Vec<f32>,
    /// Words in all epochs, by which the learning rate falls.
    pub total: usize,
    /// The sigmoid, tabulated.
    pub sigmoid: Vec<f32>,
    /// The length of a row: the dimension and its padding.
    pub stride: usize,
}
