//! What only networks can show: the vectors of every layer, and a sequence model while it is taught.

use super::interface::{LayerStates, Matrix};
use super::neural::Neural;
use super::per_item::{attention_of, logits_of, rows_of, states_of};
use crate::batch::{Example, Sequence};
use crate::error::{Error, Result};
use crate::models::Hidden;

impl Neural<'_> {
    /// Logits at every step of the examples' targets, for models that say a sequence.
    pub fn logits_taught(&self, items: &[&Example]) -> Result<Vec<Vec<f32>>> {
        self.look_at(items, logits_of)
    }

    /// All states and gates while the model is taught the examples' targets.
    pub fn states_taught(&self, items: &[&Example]) -> Result<Vec<Vec<LayerStates>>> {
        self.look_at(items, states_of)?.into_iter().collect()
    }

    /// Attention weights while the model is taught the examples' targets.
    pub fn attention_taught(&self, items: &[&Example]) -> Result<Vec<Vec<Matrix>>> {
        self.look_at(items, attention_of)?.into_iter().collect()
    }

    /// The vectors after each layer, a row for each step of the item (of its answer, in a decoder).
    pub fn hidden(&self, items: &[&Sequence]) -> Result<Vec<Vec<Matrix>>> {
        self.look(items, |tape, out, batch, b| {
            let rows = |v: &Hidden| {
                let (len, dim) = (batch.len_of(v.side, b), tape.shape(v.rows).dim);
                rows_of(tape, v.rows, b, len, 0..dim)
            };
            out.hidden.iter().map(rows).collect()
        })
    }

    /// The mean over steps of the last layer's vectors: what sentence encoders such as MiniLM give, before it is
    /// scaled to length 1.
    pub fn means(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let mean = |mut layers: Vec<Matrix>| {
            let rows = layers.pop().ok_or(Error::Missing {
                what: "vectors at every step",
            })?;
            let mut sum = vec![0.0; rows.dim];
            for row in rows.data.chunks_exact(rows.dim) {
                sum.iter_mut().zip(row).for_each(|(s, x)| *s += x);
            }
            let steps = (rows.data.len() / rows.dim) as f32;
            Ok(sum.iter().map(|s| s / steps).collect())
        };
        self.hidden(items)?.into_iter().map(mean).collect()
    }
}
