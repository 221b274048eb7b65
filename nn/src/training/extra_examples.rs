//! Examples that are generated while a fit runs, against the current weights.

use crate::autodiff::Params;
use crate::batch::Example;
use crate::error::Result;
use ndarray::Array2;

/// Brings examples beyond those that a fit was given. By default none.
pub trait ExtraExamples: Send {
    /// More examples for this epoch, counted from 0, shuffled among the others.
    fn epoch(&mut self, epoch: usize, params: &Params<f32>) -> Result<Vec<Example>> {
        let _ = (epoch, params);
        Ok(Vec::new())
    }

    /// More examples for this step, beside those of its batch. `batch` has their positions among the
    /// training examples; what [`ExtraExamples::epoch`] brought is counted on from the last of these.
    fn batch(&mut self, step: u64, params: &Params<f32>, batch: &[usize]) -> Result<Vec<Example>> {
        let _ = (step, params, batch);
        Ok(Vec::new())
    }

    /// Noise for this step: each of the first examples of the batch is read once more with it added to its vectors,
    /// (steps * slots, dim) each. Its gradient goes to the embeddings, and not to what the noise was made of.
    fn noise(
        &mut self,
        step: u64,
        params: &Params<f32>,
        batch: &[&Example],
    ) -> Result<Vec<Array2<f32>>> {
        let _ = (step, params, batch);
        Ok(Vec::new())
    }
}

/// No examples but those that are there.
pub(crate) struct NoExtra;

impl ExtraExamples for NoExtra {}
