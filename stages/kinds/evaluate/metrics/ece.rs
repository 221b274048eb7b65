//! `metric = "ece"`: the expected calibration error.
//!
//! Paper: Guo et al. 2017, "On calibration of modern neural networks", equation 3. Rows are put into bins of equal
//! width by the probability of the predicted class; the error is the mean over rows of the distance between the
//! accuracy of a row's bin and its mean probability. Bin `k` of `m` holds probabilities in `((k - 1) / m, k / m]`.

use super::entry::{Metric, MetricEntry, Number};
use super::option::MetricOption;
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, P_AFTER};

/// The metric.
pub struct Ece;

const BINS: MetricOption = MetricOption {
    name: "bins",
    default: 15,
    least: 1,
    most: 10_000,
    help: "how many bins of equal width",
};

impl Metric for Ece {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "ece",
            file: "stages/kinds/evaluate/metrics/ece.rs",
            summary: "Expected calibration error after the attack: the mean distance between the accuracy of a bin of rows and the mean probability of their predicted classes (Guo et al. 2017).",
            rows: "all rows",
            columns: &[LABEL, P_AFTER],
            placeholders: &[],
        }
    }

    fn options(&self) -> &'static [MetricOption] {
        &[BINS]
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (label, after) = (rows.label()?, rows.probabilities_after()?);
        let predicted = label.iter().zip(&after).map(|(label, p)| {
            let class = nn::numeric::argmax(p);
            (f64::from(p[class]), class as i64 == *label)
        });
        let bins = rows.option(&BINS) as usize;
        Ok(vec![Number {
            value: error(&predicted.collect::<Vec<_>>(), bins),
            n: Some(label.len() as u64),
            about: Vec::new(),
        }])
    }
}

/// The error of probabilities, each with whether the prediction was correct.
fn error(predicted: &[(f64, bool)], bins: usize) -> Option<f64> {
    // The sum of probabilities in a bin minus the number of correct rows there.
    let mut gaps = vec![0.0; bins];
    for (p, correct) in predicted {
        let bin = (p * bins as f64).ceil() as usize;
        gaps[bin.clamp(1, bins) - 1] += p - f64::from(u8::from(*correct));
    }
    let n = predicted.len();
    (n > 0).then(|| gaps.iter().map(|gap| gap.abs()).sum::<f64>() / n as f64)
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn errors_by_hand() {
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}");
        };
        // Two bins: (0, 0.5] has one row, sure of 0.5 and wrong; (0.5, 1] has three of mean 0.8, two correct.
        let rows = [(0.5, false), (0.7, true), (0.8, true), (0.9, false)];
        close(error(&rows, 2), (0.5 + (2.4 - 2.0)) / 4.0);
        // One bin: the distance between mean probability and accuracy.
        close(error(&rows, 1), (2.9 - 2.0) / 4.0);
        assert_eq!(error(&[(1.0, true), (1.0, true)], 15), Some(0.0));
        assert_eq!(error(&[(1.0, false)], 15), Some(1.0));
        assert_eq!(error(&[], 15), None);
    }

    /// More bins can only find more error, if they refine the coarser ones.
    #[test]
    fn finer_bins_find_no_less() {
        let stream = nn::Stream::new(6, "ece");
        let row = |n: u64| (stream.uniform(2 * n), stream.uniform(2 * n + 1) < 0.7);
        let rows: Vec<(f64, bool)> = (0..200).map(row).collect();
        let errors = [1, 2, 4, 8, 16, 32].map(|bins| error(&rows, bins).unwrap());
        assert!(
            errors.windows(2).all(|e| e[0] <= e[1] + 1e-12),
            "{errors:?}"
        );
    }
}
