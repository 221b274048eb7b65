//! What attacks see of a model: answers, gradients of the input, states, attention, and the bill.
//!
//! [`Neural`] is a network under attack; bags of words are victims too, with less to show.

use crate::batch::{Example, Sequence};
use crate::error::{Error, Result};
use crate::models::Queries;
use crate::numeric::softmax;
use crate::objectives::Objective;

/// Numbers in rows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Matrix {
    /// Numbers in a row.
    pub dim: usize,
    /// Rows one after the other.
    pub data: Vec<f32>,
}

/// The value of an objective and its gradient with respect to the vectors an item was read as.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The objective.
    pub value: f64,
    /// A row for each step (each character of each word for character models).
    pub input: Matrix,
    /// The logits of the same forward pass.
    pub logits: Vec<f32>,
}

/// What one recurrent layer went through on one item; a row for each step.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerStates {
    /// Hidden states.
    pub h: Matrix,
    /// Cell states of an LSTM.
    pub c: Option<Matrix>,
    /// Gate activations by letter.
    pub gates: Vec<(char, Matrix)>,
}

/// A model under attack. What a kind of model has not got is an error that says so.
pub trait Victim: Sync {
    /// Logits of each item; all steps in turn for sequence models. A model that says a sequence of its own is asked
    /// for its answer first, which is one more forward pass an item; the steps are those of its answer.
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>>;

    /// The gradient of an objective with respect to each item's input vectors.
    fn gradients(&self, _: &[&Example], _: &Objective) -> Result<Vec<Gradient>> {
        Err(Error::Missing {
            what: "input gradient",
        })
    }

    /// All states and gates, layer by layer.
    fn states(&self, _: &[&Sequence]) -> Result<Vec<Vec<LayerStates>>> {
        Err(Error::Missing {
            what: "recurrent states",
        })
    }

    /// Attention weights: for each layer one row a head and query (one row in all for pooling), a column for each
    /// step that is looked at.
    fn attention(&self, _: &[&Sequence]) -> Result<Vec<Vec<Matrix>>> {
        Err(Error::Missing { what: "attention" })
    }

    /// The vector that the classifier's head reads.
    fn sentences(&self, _: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        Err(Error::Missing {
            what: "sentence vector",
        })
    }

    /// Passes made so far.
    fn queries(&self) -> Queries;

    /// Class probabilities of each item, of every step for sequence models.
    fn probabilities(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let mut logits = self.logits(items)?;
        logits.iter_mut().for_each(|z| {
            softmax(z);
        });
        Ok(logits)
    }
}
