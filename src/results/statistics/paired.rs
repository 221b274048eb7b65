//! The difference of two columns of numbers that belong together pair by pair: the same seed, the same item.

use serde::Serialize;

use super::interval::{Interval, Method};
use super::student::{mean, mean_interval, sd, two_sided};

/// A difference `a - b` with how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedDifference {
    /// The mean of the differences.
    pub mean: f64,
    /// How many pairs.
    pub pairs: usize,
    /// Its 95% interval; none of a single pair.
    pub interval: Option<Interval>,
    /// The probability of a difference at least as large if there is none; none of a single pair.
    pub p: Option<f64>,
    /// The test behind `p`, by name.
    pub test: &'static str,
}

/// The name of the test by Student's t.
pub const PAIRED_T: &str = "paired t test";

/// The mean difference by Student's t; none without pairs. `a` and `b` are as long.
pub fn paired_difference(a: &[f64], b: &[f64]) -> Option<PairedDifference> {
    assert_eq!(a.len(), b.len(), "each number has its partner");
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let mean = mean(&differences)?;
    let interval = mean_interval(&differences);
    Some(PairedDifference {
        mean,
        pairs: differences.len(),
        p: sd(&differences).map(|sd| probability(mean, sd, differences.len())),
        interval: interval.map(|interval| Interval {
            method: Method::StudentT,
            ..interval
        }),
        test: PAIRED_T,
    })
}

fn probability(mean: f64, sd: f64, n: usize) -> f64 {
    match (sd > 0.0, mean == 0.0) {
        (true, _) => two_sided(mean / (sd / (n as f64).sqrt()), n - 1),
        // Pairs that all differ by the same amount: by nothing, or by something that never varies.
        (false, true) => 1.0,
        (false, false) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_of_pairs() {
        // R: t.test(c(.83, .86, .85), c(.80, .84, .81), paired = TRUE)
        let found = paired_difference(&[0.83, 0.86, 0.85], &[0.80, 0.84, 0.81]).unwrap();
        assert!((found.mean - 0.03).abs() < 1e-12);
        assert!((found.p.unwrap() - 0.035_098_7).abs() < 1e-6, "{found:?}");
        let interval = found.interval.unwrap();
        assert!((interval.low - 0.005_158_6).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 0.054_841_4).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn a_constant_difference_and_a_single_pair() {
        let none = paired_difference(&[0.5, 0.75], &[0.5, 0.75]).unwrap();
        assert_eq!((none.mean, none.p), (0.0, Some(1.0)));
        let always = paired_difference(&[0.5, 0.75], &[0.25, 0.5]).unwrap();
        assert_eq!((always.mean, always.p), (0.25, Some(0.0)));
        let single = paired_difference(&[0.5], &[0.25]).unwrap();
        assert_eq!((single.mean, single.p, single.interval), (0.25, None, None));
        assert_eq!(paired_difference(&[], &[]), None);
    }
}
