//! Curves that were measured several times: their mean, and a band around it.

use super::draw::Band;
use crate::results::statistics::{mean, mean_interval};

/// What is said of bands.
pub const NOTE: &str =
    "Lines are means; bands are 95% intervals by Student's t over what was measured several times.";

/// The mean at every x, and the 95% interval where there are several numbers. None if no x has several.
pub fn averaged(points: &[(f64, f64)]) -> Option<(Vec<(f64, f64)>, Band)> {
    let mut sorted: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .copied()
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut line, mut band) = (Vec::new(), Band::new());
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        let numbers: Vec<f64> = same.iter().map(|(_, y)| *y).collect();
        let x = same[0].0;
        line.extend(mean(&numbers).map(|mean| (x, mean)));
        band.extend(mean_interval(&numbers).map(|at| (x, at.low, at.high)));
    }
    (!band.is_empty()).then_some((line, band))
}

#[cfg(test)]
mod tests {
    use super::averaged;

    #[test]
    fn repeated_points_become_a_mean_and_a_band() {
        let points = [(2.0, 0.5), (1.0, 0.25), (1.0, 0.75), (3.0, f64::NAN)];
        let (line, band) = averaged(&points).unwrap();
        assert_eq!(line, [(1.0, 0.5), (2.0, 0.5)]);
        assert_eq!(band.len(), 1);
        assert!(band[0].0 == 1.0 && band[0].1 < 0.25 && band[0].2 > 0.75);
        assert_eq!(averaged(&points[..2]), None);
        assert_eq!(averaged(&[]), None);
    }
}
