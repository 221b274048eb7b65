//! `metric = "auc"`: the area under the ROC curve.
//!
//! The probability that a random row of a class gets a higher probability of it than a random row of another
//! class, ties counted half: the Mann-Whitney statistic divided by the number of pairs.

use super::entry::{Metric, MetricEntry, Number};
use super::rows::AttackedRows;
use crate::Failure;
use crate::tables::examples::{LABEL, P_AFTER};

/// The metric.
pub struct Auc;

impl Metric for Auc {
    fn entry(&self) -> MetricEntry {
        MetricEntry {
            name: "auc",
            file: "stages/kinds/evaluate/metrics/auc.rs",
            summary: "Area under the ROC curve of the probabilities after the attack: of class 1 if there are two classes, else the unweighted mean over the classes that some rows have and some do not, each against the rest.",
            rows: "all rows",
            columns: &[LABEL, P_AFTER],
            placeholders: &[],
        }
    }

    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure> {
        let (label, after) = (rows.label()?, rows.probabilities_after()?);
        let classes = after.first().map_or(0, Vec::len);
        let of = |class: usize| {
            let scored = label.iter().zip(&after);
            let scored = scored.map(|(label, p)| (p[class], *label == class as i64));
            area(scored.collect())
        };
        let areas: Vec<f64> = match classes {
            2 => of(1).into_iter().collect(),
            classes => (0..classes).filter_map(of).collect(),
        };
        Ok(vec![Number::mean_of(&areas, label.len())])
    }
}

/// The area of scores, each with whether it is of a positive row; none without positive or negative rows.
fn area(mut scored: Vec<(f32, bool)>) -> Option<f64> {
    let positive = scored.iter().filter(|(_, positive)| *positive).count();
    let negative = scored.len() - positive;
    if positive == 0 || negative == 0 {
        return None;
    }
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the number of pairs in the right order, ties counted once: integers, so that no order matters.
    let (mut twice, mut below) = (0_u128, 0_u128);
    for tied in scored.chunk_by(|a, b| a.0 == b.0) {
        let positive = tied.iter().filter(|(_, positive)| *positive).count() as u128;
        let negative = tied.len() as u128 - positive;
        twice += positive * (2 * below + negative);
        below += negative;
    }
    Some(twice as f64 / (2.0 * positive as f64 * negative as f64))
}

#[cfg(test)]
mod tests {
    use super::area;

    fn scores(positive: &[f32], negative: &[f32]) -> Vec<(f32, bool)> {
        let positive = positive.iter().map(|p| (*p, true));
        positive
            .chain(negative.iter().map(|p| (*p, false)))
            .collect()
    }

    #[test]
    fn areas_by_hand() {
        assert_eq!(area(scores(&[0.8, 0.9], &[0.1, 0.2])), Some(1.0));
        assert_eq!(area(scores(&[0.1], &[0.9])), Some(0.0));
        // Of 6 pairs, 4 are in order and 1 is tied.
        assert_eq!(
            area(scores(&[0.4, 0.8, 0.35], &[0.1, 0.4])),
            Some(4.5 / 6.0)
        );
        assert_eq!(area(scores(&[0.5; 7], &[0.5; 3])), Some(0.5));
        assert_eq!(area(scores(&[0.5], &[])), None);
    }

    /// Reversing all scores mirrors the area, and so does swapping the classes; monotone maps leave it alone.
    #[test]
    fn areas_have_their_symmetries() {
        let stream = nn::Stream::new(5, "auc");
        let draw = |n: u64| (stream.uniform(n) * 20.0).floor() as f32 / 20.0;
        for trial in 0..50_u64 {
            let at = |n: u64| draw(1000 * trial + n);
            let all: Vec<(f32, bool)> = (0..30).map(|n| (at(n), at(500 + n) > 0.6)).collect();
            let Some(one) = area(all.clone()) else {
                continue;
            };
            let map = |f: fn((f32, bool)) -> (f32, bool)| all.iter().copied().map(f).collect();
            let mirrored = |area: Option<f64>| (area.unwrap() + one - 1.0).abs() < 1e-12;
            assert!(mirrored(area(map(|(p, y)| (-p, y)))));
            assert!(mirrored(area(map(|(p, y)| (p, !y)))));
            assert_eq!(area(map(|(p, y)| (p * p * p, y))), Some(one));
        }
    }
}
