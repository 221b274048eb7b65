//! The features that a linear model reads from a text: its words, the mean of their vectors, or their vectors concatenated.
//!
//! - words: `x[w] = 1` if `w` occurs, or how often it occurs; as long as the vocabulary
//! - mean: `x = mean over tokens of v[w]`; as long as a vector
//! - concatenated: `x = [v[w_0]; v[w_1]; ...]`, zeros after the last token; `steps` vectors long.
//!   Never written out: products go through the tokens.

use crate::error::{Error, Result, same, setting};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The value of a word's feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TermWeighting {
    /// 1 if it occurs.
    Binary,
    /// How often it occurs.
    Count,
}

/// What is read of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Features {
    /// A bag of words.
    Words(TermWeighting),
    /// The mean of the words' vectors.
    Mean,
    /// The vectors of the first `steps` words.
    Concatenated {
        /// How many words.
        steps: usize,
    },
}

/// Vectors of words, one row each.
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    /// Embedding dimension.
    pub dim: usize,
    /// All rows.
    pub data: Arc<[f32]>,
}

impl Vectors {
    /// (words, dim)
    pub fn view(&self) -> ArrayView2<'_, f32> {
        let rows = self.data.len() / self.dim.max(1);
        ArrayView2::from_shape((rows, self.dim), &self.data[..rows * self.dim]).expect("whole rows")
    }
}

/// How texts become features.
#[derive(Clone, Debug)]
pub struct FeatureReader {
    features: Features,
    vocabulary: usize,
    vectors: Option<Vectors>,
}

/// The features of one text.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// The places of those that are one; all others are zero.
    Ones(Vec<u32>),
    /// Those that are not zero, by place. Counts are exact in 32 bits.
    Sparse(Vec<(u32, f32)>),
    /// All of them.
    Dense(Vec<f64>),
    /// The words whose vectors they are.
    Tokens(Vec<u32>),
}

impl FeatureReader {
    /// An error when vectors are needed and missing, or do not belong to the vocabulary.
    pub fn new(features: Features, vocabulary: usize, vectors: Option<Vectors>) -> Result<Self> {
        if let Features::Concatenated { steps } = features {
            setting("steps", steps > 0, "above 0", steps)?;
        }
        match (&features, &vectors) {
            (Features::Words(_), _) => {}
            (_, None) => {
                return Err(Error::Missing {
                    what: "vectors of words",
                });
            }
            (_, Some(v)) => same("values in the vectors", vocabulary * v.dim, v.data.len())?,
        }
        Ok(FeatureReader {
            features,
            vocabulary,
            vectors,
        })
    }

    /// Number of features.
    pub fn size(&self) -> usize {
        let dim = self.vectors.as_ref().map_or(0, |v| v.dim);
        match self.features {
            Features::Words(_) => self.vocabulary,
            Features::Mean => dim,
            Features::Concatenated { steps } => steps * dim,
        }
    }

    /// How many words there are.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The features of a text, whose tokens are inside the vocabulary.
    pub fn read(&self, tokens: &[u32]) -> Row {
        match self.features {
            Features::Words(TermWeighting::Binary) => Row::Ones(distinct(tokens)),
            Features::Words(TermWeighting::Count) => Row::Sparse(counts(tokens)),
            Features::Mean => {
                let mut mean = vec![0.0; self.size()];
                for &token in tokens {
                    let v = self.vector(token);
                    mean.iter_mut()
                        .zip(v)
                        .for_each(|(m, v)| *m += f64::from(*v));
                }
                let count = tokens.len().max(1) as f64;
                mean.iter_mut().for_each(|m| *m /= count);
                Row::Dense(mean)
            }
            Features::Concatenated { steps } => {
                Row::Tokens(tokens[..tokens.len().min(steps)].to_vec())
            }
        }
    }

    /// `w . x`
    pub fn product(&self, w: &[f64], x: &Row) -> f64 {
        match x {
            Row::Ones(x) => x.iter().map(|j| w[*j as usize]).sum(),
            Row::Sparse(x) => x.iter().map(|(j, v)| w[*j as usize] * f64::from(*v)).sum(),
            Row::Dense(x) => x.iter().zip(w).map(|(v, w)| w * v).sum(),
            Row::Tokens(tokens) => {
                let dim = self.size() / self.steps();
                let parts = tokens.iter().zip(w.chunks_exact(dim));
                parts
                    .map(|(token, w)| {
                        let v = self.vector(*token);
                        v.iter().zip(w).map(|(v, w)| w * f64::from(*v)).sum::<f64>()
                    })
                    .sum()
            }
        }
    }

    /// `w += factor x`
    pub fn add(&self, w: &mut [f64], x: &Row, factor: f64) {
        match x {
            Row::Ones(x) => x.iter().for_each(|j| w[*j as usize] += factor),
            Row::Sparse(x) => x
                .iter()
                .for_each(|(j, v)| w[*j as usize] += factor * f64::from(*v)),
            Row::Dense(x) => w.iter_mut().zip(x).for_each(|(w, v)| *w += factor * v),
            Row::Tokens(tokens) => {
                let dim = self.size() / self.steps();
                for (token, w) in tokens.iter().zip(w.chunks_exact_mut(dim)) {
                    let v = self.vector(*token);
                    let pairs = w.iter_mut().zip(v);
                    pairs.for_each(|(w, v)| *w += factor * f64::from(*v));
                }
            }
        }
    }

    fn steps(&self) -> usize {
        match self.features {
            Features::Concatenated { steps } => steps,
            _ => 1,
        }
    }

    fn vector(&self, token: u32) -> &[f32] {
        match &self.vectors {
            Some(v) => &v.data[token as usize * v.dim..][..v.dim],
            None => &[],
        }
    }
}

/// Distinct words in order.
fn distinct(tokens: &[u32]) -> Vec<u32> {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// Distinct words in order, each with how often it occurs.
fn counts(tokens: &[u32]) -> Vec<(u32, f32)> {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as f32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(features: Features) -> FeatureReader {
        let data = (0..8).map(|i| i as f32).collect();
        FeatureReader::new(features, 4, Some(Vectors { dim: 2, data })).unwrap()
    }

    #[test]
    fn every_reading_has_the_features_of_its_formula() {
        let row = |features| reading(features).read(&[3, 1, 3]);
        assert_eq!(
            row(Features::Words(TermWeighting::Binary)),
            Row::Ones(vec![1, 3])
        );
        assert_eq!(
            row(Features::Words(TermWeighting::Count)),
            Row::Sparse(vec![(1, 1.0), (3, 2.0)])
        );
        assert_eq!(
            row(Features::Mean),
            Row::Dense(vec![14.0 / 3.0, 17.0 / 3.0])
        );
        assert_eq!(
            row(Features::Concatenated { steps: 2 }),
            Row::Tokens(vec![3, 1])
        );
    }

    #[test]
    fn concatenated_vectors_multiply_and_add_as_if_written_out() {
        let reading = reading(Features::Concatenated { steps: 4 });
        let x = reading.read(&[3, 1, 3]);
        let written = [6.0, 7.0, 2.0, 3.0, 6.0, 7.0, 0.0, 0.0];
        let mut w: Vec<f64> = (1..9).map(f64::from).collect();
        let product: f64 = w.iter().zip(written).map(|(w, x)| w * x).sum();
        assert_eq!(reading.product(&w, &x), product);
        let expected: Vec<f64> = w.iter().zip(written).map(|(w, x)| w + 0.5 * x).collect();
        reading.add(&mut w, &x, 0.5);
        assert_eq!(w, expected);
    }

    #[test]
    fn vectors_must_be_there_and_fit() {
        assert!(FeatureReader::new(Features::Mean, 4, None).is_err());
        let data = [0.0; 7].into();
        assert!(FeatureReader::new(Features::Mean, 4, Some(Vectors { dim: 2, data })).is_err());
    }
}
