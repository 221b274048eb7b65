//! Noise in character embeddings, in the direction in which the loss grows (Miyato et al. 2017, as HotFlip compares
//! itself with).
//!
//! For a word with the gradient `g` of the loss with respect to the matrix of its character embeddings `E`,
//! `noise = epsilon g / ||g||`, or that times `||E||`, in Frobenius norms. The gradient is taken without dropout, and
//! nothing is differentiated through it.

use ndarray::{Array2, ArrayView2, Axis};
use nn::autodiff::Params;
use nn::batch::{Example, Sequence};
use nn::models::Model;
use nn::objectives::Objective;
use nn::victim::{Neural, Victim};

/// How much noise.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingNoise {
    /// Its norm for each word.
    pub epsilon: f64,
    /// Whether that is relative to the norm of the word's embeddings.
    pub relative: bool,
}

impl EmbeddingNoise {
    /// The noise of each example, a row for each character.
    pub fn of(
        &self,
        model: &Model,
        params: &Params<f32>,
        batch: &[&Example],
    ) -> nn::Result<Vec<Array2<f32>>> {
        let network = Neural::new(model, params)?;
        let gradients = network.gradients(batch, &Objective::CrossEntropy)?;
        let texts: Vec<&Sequence> = batch.iter().map(|example| &example.input).collect();
        let vectors = match self.relative {
            true => network.embed(&texts)?.into_iter().map(Some).collect(),
            false => vec![None; texts.len()],
        };
        let each = texts.iter().zip(gradients).zip(vectors);
        let noise = each.map(|((text, gradient), vectors)| {
            let width = match text {
                Sequence::Chars { width, .. } => *width,
                _ => 1,
            };
            self.of_words(gradient.input, vectors, width)
        });
        Ok(noise.collect())
    }

    fn of_words(
        &self,
        mut gradient: Array2<f32>,
        vectors: Option<Array2<f32>>,
        width: usize,
    ) -> Array2<f32> {
        for (n, mut word) in gradient.axis_chunks_iter_mut(Axis(0), width).enumerate() {
            let embedded = vectors.as_ref().map_or(1.0, |vectors| {
                let rows = n * width..(n + 1) * width;
                norm(vectors.slice(ndarray::s![rows, ..]))
            });
            let length = norm(word.view());
            // A word that changes nothing has no direction.
            let scale = match length > 0.0 {
                true => self.epsilon * embedded / length,
                false => 0.0,
            };
            word.mapv_inplace(|g| (f64::from(g) * scale) as f32);
        }
        gradient
    }
}

fn norm(matrix: ArrayView2<'_, f32>) -> f64 {
    let squares = matrix.iter().map(|x| f64::from(*x) * f64::from(*x));
    squares.sum::<f64>().sqrt()
}
