//! `metric = "kept_share"`: how similar the adversarial text is to the original.
//!
//! The length of their longest common subsequence of tokens, divided by the length of the longer text: 1 for the
//! same text, 0 for texts without a common token; a replaced, inserted or deleted token costs one.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{ADVERSARIAL, ORIGINAL, SUCCESS};

/// The metric.
pub struct KeptShare;

impl Metric for KeptShare {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "kept_share",
            file: "stages/kinds/evaluate/metrics/kept_share.rs",
            summary: "Similarity, as the mean over successful attacks of the tokens kept: the longest common subsequence of the original and the adversarial text divided by the longer of the two; padding at the end is not counted.",
            rows: "successes",
            columns: &[SUCCESS, ORIGINAL, ADVERSARIAL],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (old, new) = (rows.tokens(ORIGINAL)?, rows.tokens(ADVERSARIAL)?);
        let texts = old.into_iter().zip(new).zip(rows.success()?);
        let successes = texts.filter(|(_, success)| *success);
        let shares: Vec<f64> = successes.map(|((old, new), _)| kept(&old, &new)).collect();
        Ok(vec![Number::mean_of(&shares, shares.len())])
    }
}

fn kept(old: &[i32], new: &[i32]) -> f64 {
    let longer = old.len().max(new.len());
    match longer {
        0 => 1.0,
        longer => common(old, new) as f64 / longer as f64,
    }
}

/// The length of the longest common subsequence.
fn common(old: &[i32], new: &[i32]) -> usize {
    // What begins and ends alike is common, and most of a text is.
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[start..], &new[start..]);
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let mut best = vec![0_usize; new.len() + 1];
    for a in old {
        let mut diagonal = 0;
        for (n, b) in new.iter().enumerate() {
            let above = best[n + 1];
            best[n + 1] = match a == b {
                true => diagonal + 1,
                false => above.max(best[n]),
            };
            diagonal = above;
        }
    }
    start + end + best[new.len()]
}

#[cfg(test)]
mod tests {
    use super::{common, kept};

    #[test]
    fn shares_by_hand() {
        assert_eq!(kept(&[1, 2, 3, 4], &[1, 2, 3, 4]), 1.0);
        assert_eq!(kept(&[1, 2, 3, 4], &[1, 9, 3, 4]), 0.75);
        assert_eq!(kept(&[1, 2, 3], &[1, 2, 9, 3]), 0.75, "inserted");
        assert_eq!(kept(&[1, 2, 3, 4], &[1, 2, 4]), 0.75, "deleted");
        assert_eq!(kept(&[1, 2], &[3, 4]), 0.0);
        assert_eq!(kept(&[], &[]), 1.0);
    }

    /// Symmetric, and what a recursion over all subsequences finds.
    #[test]
    fn the_longest_common_subsequence_is_the_longest() {
        fn slow(a: &[i32], b: &[i32]) -> usize {
            match (a, b) {
                ([], _) | (_, []) => 0,
                ([x, a @ ..], [y, b @ ..]) if x == y => 1 + slow(a, b),
                ([_, rest @ ..], [_, others @ ..]) => slow(rest, b).max(slow(a, others)),
            }
        }
        let stream = nn::Stream::new(9, "common");
        let text = |n: u64| -> Vec<i32> {
            let s = stream.item(n);
            (0..s.below(0, 8) as u64)
                .map(|k| s.below(1 + k, 3) as i32)
                .collect()
        };
        for n in 0..300 {
            let (a, b) = (text(2 * n), text(2 * n + 1));
            assert_eq!(common(&a, &b), slow(&a, &b), "{a:?} {b:?}");
            assert_eq!(common(&a, &b), common(&b, &a));
        }
    }
}
