//! An interval that names the method it was made by.

use serde::{Deserialize, Serialize};

/// The level of every interval that is shown, in percent.
pub const LEVEL: f64 = 95.0;

/// The probability that lies beyond either end.
pub const TAIL: f64 = (100.0 - LEVEL) / 200.0;

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Student's t, over executions with different seeds.
    StudentT,
    /// Wilson's score for a proportion, over items.
    Wilson,
    /// Percentiles of resampled items.
    Bootstrap,
    /// Percentiles of draws that vary items and seeds.
    Draws,
    /// Percentiles of draws that vary items.
    DrawnItems,
    /// Percentiles of draws that vary seeds.
    DrawnSeeds,
}

impl Method {
    /// As it is printed beside an interval.
    pub fn name(self) -> &'static str {
        match self {
            Method::StudentT => "Student's t over seeds",
            Method::Wilson => "Wilson score over items",
            Method::Bootstrap => "bootstrap over items",
            Method::Draws => "draws over items and seeds",
            Method::DrawnItems => "draws over items",
            Method::DrawnSeeds => "draws over seeds",
        }
    }
}

/// A 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How it was made.
    pub method: Method,
}

impl Interval {
    /// Whether a number lies in it, ends included.
    pub fn contains(&self, number: f64) -> bool {
        self.low <= number && number <= self.high
    }
}

/// From the 2.5th to the 97.5th percentile of finite numbers, in any order; none of fewer than 40, which have no
/// such percentiles.
pub fn percentile_interval(mut numbers: Vec<f64>, method: Method) -> Option<Interval> {
    numbers.retain(|number| number.is_finite());
    if (numbers.len() as f64) * TAIL < 1.0 {
        return None;
    }
    numbers.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: percentile(&numbers, TAIL),
        high: percentile(&numbers, 1.0 - TAIL),
        method,
    })
}

/// The percentile of sorted numbers, linear between neighbours (Hyndman and Fan's type 7).
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + part * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_linear_between_neighbours() {
        let numbers: Vec<f64> = (0..=200).rev().map(f64::from).collect();
        let interval = percentile_interval(numbers, Method::Draws).unwrap();
        assert_eq!((interval.low, interval.high), (5.0, 195.0));
        assert_eq!(percentile(&[1.0, 2.0], 0.25), 1.25);
        assert!(interval.contains(5.0) && interval.contains(195.0) && !interval.contains(195.1));
    }

    #[test]
    fn too_few_numbers_have_no_interval() {
        let nan = vec![f64::NAN; 1000];
        assert_eq!(percentile_interval(nan, Method::Draws), None);
        assert_eq!(percentile_interval(vec![1.0; 39], Method::Draws), None);
        assert!(percentile_interval(vec![1.0; 40], Method::Draws).is_some());
    }
}
