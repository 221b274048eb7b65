//! Wilson's score interval of a proportion. E. B. Wilson, Probable inference, the law of succession, and
//! statistical inference, JASA 22 (1927): unlike mean ± 2 sd it is sound near 0 and 1, and for few items.

use statrs::distribution::{ContinuousCDF, Normal};

use super::interval::{Interval, Method, TAIL};

/// The 95% interval of a proportion that was measured on `n` items; none without items, or if it is not one.
pub fn wilson(proportion: f64, n: u64) -> Option<Interval> {
    if n == 0 || !(0.0..=1.0).contains(&proportion) {
        return None;
    }
    let n = n as f64;
    let z = Normal::standard().inverse_cdf(1.0 - TAIL);
    let z2 = z * z;
    let centre = (proportion + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let variance = proportion * (1.0 - proportion) / n + z2 / (4.0 * n * n);
    let half = z * variance.sqrt() / (1.0 + z2 / n);
    // Rounding must not push an end past what it bounds.
    Some(Interval {
        low: (centre - half).max(0.0).min(proportion),
        high: (centre + half).min(1.0).max(proportion),
        method: Method::Wilson,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_intervals() {
        // 81 of 263: Newcombe, Statistics in Medicine 17 (1998), Table I, method 3.
        for (hits, n, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = wilson(f64::from(hits) / n as f64, n).unwrap();
            assert!((found.low - low).abs() < 5e-5, "{found:?}");
            assert!((found.high - high).abs() < 5e-5, "{found:?}");
        }
        assert_eq!((wilson(0.5, 0), wilson(1.5, 10)), (None, None));
        assert_eq!(wilson(f64::NAN, 10), None);
    }

    proptest! {
        /// Its ends are the proportions whose score test just rejects what was seen.
        #[test]
        fn its_ends_solve_the_score_equation(hits in 0_u64..=200, more in 0_u64..200) {
            let n = hits + more + 1;
            let seen = hits as f64 / n as f64;
            let interval = wilson(seen, n).unwrap();
            prop_assert!(0.0 <= interval.low && interval.low <= seen);
            prop_assert!(seen <= interval.high && interval.high <= 1.0);
            for end in [interval.low, interval.high] {
                if end > 0.0 && end < 1.0 && end != seen {
                    let score = (seen - end).abs() / (end * (1.0 - end) / n as f64).sqrt();
                    prop_assert!((score - 1.959_964).abs() < 1e-4, "{score}");
                }
            }
        }
    }
}
