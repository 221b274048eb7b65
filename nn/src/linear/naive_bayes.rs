//! Multinomial naive Bayes with Laplace's correction, no class prior.
//!
//! `phi[w | y] = (1 + count of w in class y) / (|V| + tokens of class y)`; the logit of a class is `sum over tokens of ln phi`.

use crate::batch::{Example, Sequence};
use crate::error::{Result, same, setting};
use crate::linear::bag_of_words::{labelled, tokens_of};
use crate::victim::{Queries, Victim};
use ndarray::Array2;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A trained classifier.
#[derive(Debug)]
pub struct NaiveBayes {
    /// How often a token occurs in a class, (classes, vocabulary)
    counts: Vec<u64>,
    /// `ln phi`, likewise
    log: Vec<f64>,
    classes: usize,
    vocabulary: usize,
    forwards: AtomicU64,
}

impl NaiveBayes {
    /// Counts tokens.
    pub fn fit(examples: &[Example], vocabulary: usize, classes: usize) -> Result<Self> {
        let texts = labelled(examples, vocabulary, classes)?;
        let mut counts = vec![0u64; classes * vocabulary];
        let rows = counts.par_chunks_exact_mut(vocabulary).enumerate();
        rows.for_each(|(class, counts)| {
            for (tokens, _) in texts.iter().filter(|(_, y)| *y == class) {
                for &w in *tokens {
                    counts[w as usize] += 1;
                }
            }
        });
        NaiveBayes::from_counts(counts, vocabulary, classes)
    }

    /// The classifier of these counts, (classes, vocabulary).
    pub fn from_counts(counts: Vec<u64>, vocabulary: usize, classes: usize) -> Result<Self> {
        setting("vocabulary", vocabulary > 0, "above 0", vocabulary)?;
        same("counts", classes * vocabulary, counts.len())?;
        let mut log = vec![0.0; counts.len()];
        let rows = log.par_chunks_exact_mut(vocabulary);
        rows.zip(counts.par_chunks_exact(vocabulary))
            .for_each(|(log, counts)| {
                let total = (vocabulary as u64 + counts.iter().sum::<u64>()) as f64;
                let of = |count: u64| ((1 + count) as f64 / total).ln();
                // Most words of a dictionary never occur.
                let never = of(0);
                for (log, &count) in log.iter_mut().zip(counts) {
                    *log = if count == 0 { never } else { of(count) };
                }
            });
        Ok(NaiveBayes {
            counts,
            log,
            classes,
            vocabulary,
            forwards: AtomicU64::new(0),
        })
    }

    /// How often each token occurs in each class, (classes, vocabulary).
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// `ln phi[w | y]`; differences between classes are what swaps of words act on.
    pub fn log_probability(&self, class: usize, token: u32) -> f64 {
        self.log[class * self.vocabulary + token as usize]
    }

    /// `sum of ln phi` for each class.
    pub fn scores(&self, text: &Sequence) -> Result<Vec<f64>> {
        let tokens = tokens_of(text, 0, self.vocabulary)?;
        Ok((0..self.classes)
            .map(|y| tokens.iter().map(|w| self.log_probability(y, *w)).sum())
            .collect())
    }
}

impl Victim for NaiveBayes {
    /// Scores less their maximum: sums over a text are too large for `f32` to tell classes apart.
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        self.forwards
            .fetch_add(items.len() as u64, Ordering::Relaxed);
        let relative = |scores: Vec<f64>| {
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Array2::from_shape_fn((1, scores.len()), |(_, k)| (scores[k] - top) as f32)
        };
        items
            .iter()
            .map(|text| self.scores(text).map(relative))
            .collect()
    }
    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Target;

    #[test]
    fn counts_become_the_probabilities_of_the_formula() {
        let text = |ids: &[u32], y| Example {
            input: Sequence::Tokens(ids.to_vec()),
            target: Target::Class(y),
        };
        let nb = NaiveBayes::fit(&[text(&[0, 0, 1], 0), text(&[1, 2], 1)], 3, 2).unwrap();
        assert!((nb.log_probability(0, 0) - (3.0f64 / 6.0).ln()).abs() < 1e-12);
        assert!((nb.log_probability(1, 0) - (1.0f64 / 5.0).ln()).abs() < 1e-12);
        let scores = nb.scores(&Sequence::Tokens(vec![0, 2])).unwrap();
        assert!(
            (scores[0] - (0.5f64 / 6.0).ln()).abs() < 1e-12
                && (scores[1] - (0.4f64 / 5.0).ln()).abs() < 1e-12
        );
        assert_eq!(
            nb.logits(&[&Sequence::Tokens(vec![0, 2])]).unwrap()[0][[0, 0]],
            0.0,
            "the best class is at zero"
        );
        assert_eq!(
            nb.queries(),
            Queries {
                forwards: 1,
                backwards: 0
            }
        );
        assert!(
            NaiveBayes::fit(&[text(&[3], 0)], 3, 2).is_err(),
            "a token outside the vocabulary"
        );
    }
}
