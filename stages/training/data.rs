//! What a model is trained on.

use nn::batch::Example;
use nn::linear::Vectors;

/// Examples, and what else training depends on.
pub struct TrainingData<'a> {
    /// Rows to learn from.
    pub train: &'a [Example],
    /// Rows that select the best epoch.
    pub dev: &'a [Example],
    /// Connected word vectors.
    pub vectors: Option<&'a Vectors>,
    /// Pre-trained weights to start from, as a safetensors file.
    pub pretrained: Option<&'a [u8]>,
    /// Names the order of rows, the initial weights and the dropout.
    pub seed: u64,
}
