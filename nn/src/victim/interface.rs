//! What attacks see of a model. Knows no model.

use crate::batch::{Example, Sequence, Side};
use crate::error::{Error, Result};
use crate::layers::Direction;
use crate::models::Queries;
use crate::numeric::softmax;
use crate::objectives::Objective;
use ndarray::{Array1, Array2, Array3};

/// The value of an objective and its gradient with respect to the vectors an item was read as.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The objective.
    pub value: f64,
    /// (steps, dim); for character models a row for each character of each word.
    pub input: Array2<f32>,
    /// The logits of the same forward pass, (steps, outputs).
    pub logits: Array2<f32>,
}

/// What one recurrent layer went through on one item; (steps, units) each.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerStates {
    /// Whose steps they are.
    pub side: Side,
    /// The order in which steps were read.
    pub direction: Direction,
    /// Hidden states.
    pub h: Array2<f32>,
    /// Cell states of an LSTM.
    pub c: Option<Array2<f32>>,
    /// Gate activations by letter.
    pub gates: Vec<(char, Array2<f32>)>,
}

/// The vectors after one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerVectors {
    /// Whose steps they are: of what was read, or of what is predicted.
    pub side: Side,
    /// (steps, dim)
    pub vectors: Array2<f32>,
}

/// The attention weights of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerAttention {
    /// Whose steps attend.
    pub queries: Side,
    /// Whose steps are attended to.
    pub keys: Side,
    /// (heads, queries, keys); each row adds up to 1. Pooling has one head and one query.
    pub weights: Array3<f32>,
}

impl LayerAttention {
    /// The attention that each key gets, as the mean over heads: that of the first query, or the mean of all queries.
    pub fn received(&self, all_queries: bool) -> Vec<f64> {
        let (heads, queries, keys) = self.weights.dim();
        let rows = if all_queries { queries } else { 1 };
        let received = |key: usize| {
            let each = (0..heads).flat_map(|head| (0..rows).map(move |query| (head, query)));
            let weights = each.map(|(head, query)| f64::from(self.weights[[head, query, key]]));
            weights.sum::<f64>() / (heads * rows) as f64
        };
        (0..keys).map(received).collect()
    }
}

/// What a model says of a text with another token in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Substituted {
    /// The logits of a classifier.
    pub logits: Vec<f32>,
    /// The vector that the classifier's head reads, if the model has one.
    pub sentence: Option<Array1<f32>>,
}

/// A model under attack. What a kind of model does not have is an error.
///
/// Models that generate a sequence are asked with examples: with a target they are teacher-forced; without one they
/// decode greedily first, which is one more forward pass per item, and are then forced to their own answer. A model of
/// tokens also takes vectors in their place, such as those of [`Victim::embed`] with some rows changed or zero.
pub trait Victim: Sync {
    /// Logits of each item, (steps, outputs): one step for classifiers, those of its own output for a model that
    /// generates a sequence.
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>>;

    /// Passes made so far.
    fn queries(&self) -> Queries;

    /// Whether it answers [`Victim::gradients`].
    fn has_gradients(&self) -> bool {
        false
    }

    /// Class or token probabilities, (steps, outputs).
    fn probabilities(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        let mut logits = self.logits(items)?;
        for row in logits.iter_mut().flat_map(|z| z.rows_mut()) {
            if let Some(row) = row.into_slice() {
                softmax(row);
            }
        }
        Ok(logits)
    }

    /// Logits at every step of the examples' targets, (steps, outputs).
    fn forced_logits(&self, items: &[&Example]) -> Result<Vec<Array2<f32>>> {
        not_available("teacher forcing", items)
    }

    /// Cross-entropy at every step of the examples' targets.
    fn losses(&self, items: &[&Example]) -> Result<Vec<Array1<f64>>> {
        not_available("teacher forcing", items)
    }

    /// Greedy decoding: up to `most` tokens per item, without the end token.
    fn decode(&self, items: &[&Sequence], most: usize) -> Result<Vec<Vec<u32>>> {
        let _ = most;
        not_available("decoder", items)
    }

    /// The gradient of an objective with respect to each item's input vectors.
    fn gradients(&self, items: &[&Example], objective: &Objective) -> Result<Vec<Gradient>> {
        self.gradients_each(items, &vec![objective; items.len()])
    }

    /// As [`Victim::gradients`], with an objective for each item.
    fn gradients_each(&self, items: &[&Example], _: &[&Objective]) -> Result<Vec<Gradient>> {
        not_available("input gradient", items)
    }

    /// The vectors that each item is read as, (steps, dim): what [`Sequence::Vectors`] takes in place of tokens.
    fn embed(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        not_available("input vectors", items)
    }

    /// All states and gates of recurrent layers, layer by layer.
    fn states(&self, items: &[&Example]) -> Result<Vec<Vec<LayerStates>>> {
        not_available("recurrent states", items)
    }

    /// The vectors after each layer, at every position.
    fn hidden(&self, items: &[&Example]) -> Result<Vec<Vec<LayerVectors>>> {
        not_available("vectors at every position", items)
    }

    /// Attention weights per layer and head.
    fn attention(&self, items: &[&Example]) -> Result<Vec<Vec<LayerAttention>>> {
        not_available("attention", items)
    }

    /// The vector that the classifier's head reads.
    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Array1<f32>>> {
        not_available("sentence vector", items)
    }

    /// A classifier's answers to a text with each candidate in turn at `position`; a forward pass for each.
    fn substituted(
        &self,
        tokens: &[u32],
        position: usize,
        candidates: &[u32],
    ) -> Result<Vec<Substituted>> {
        let texts = substitutes(tokens, position, candidates)?;
        let logits = self.logits(&texts.iter().collect::<Vec<_>>())?;
        let answer = |logits: Array2<f32>| Substituted {
            logits: logits.into_raw_vec_and_offset().0,
            sentence: None,
        };
        Ok(logits.into_iter().map(answer).collect())
    }

    /// Logits of a text with the vector of each of these positions in turn set to zero; a forward pass for each.
    fn without(&self, tokens: &[u32], positions: &[usize]) -> Result<Vec<Array2<f32>>> {
        let _ = tokens;
        not_available("input vectors", positions)
    }

    /// The mean over positions of the last layer's vectors: what sentence encoders such as MiniLM give, before it is
    /// scaled to length 1.
    fn mean_vectors(&self, items: &[&Sequence]) -> Result<Vec<Array1<f32>>> {
        not_available("vectors at every position", items)
    }
}

/// A text with each candidate in turn at one place.
pub(super) fn substitutes(
    tokens: &[u32],
    position: usize,
    candidates: &[u32],
) -> Result<Vec<Sequence>> {
    if position >= tokens.len() {
        return Err(Error::Range {
            what: "position",
            item: 0,
            got: position,
            below: tokens.len(),
        });
    }
    let swapped = |candidate: &u32| {
        let mut tokens = tokens.to_vec();
        tokens[position] = *candidate;
        Sequence::Tokens(tokens)
    };
    Ok(candidates.iter().map(swapped).collect())
}

fn not_available<I, R>(what: &'static str, _: &[I]) -> Result<R> {
    Err(Error::Missing { what })
}
