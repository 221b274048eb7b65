//! McNemar's test: whether two classifiers, or two attacks, are right on the same items equally often. Only items
//! on which they differ tell. Q. McNemar, Psychometrika 12 (1947); mid-p: Fagerland, Lydersen, Laake, BMC Medical
//! Research Methodology 13 (2013).

use serde::Serialize;
use statrs::distribution::{Binomial, Discrete, DiscreteCDF};

/// How two classifiers differ on the same items.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct McNemar {
    /// Items on which only the first is right.
    pub only_first: u64,
    /// Items on which only the second is right.
    pub only_second: u64,
    /// The probability of a split at least as uneven if they are equally good.
    pub p: f64,
    /// Which form of the test, by name.
    pub test: &'static str,
}

/// With so many items or fewer on which they differ, the exact test; with more, the mid-p version, which is less
/// conservative and then keeps its level.
const FEW: u64 = 25;

/// Compares two classifiers item by item. `first` and `second` are as long.
pub fn mcnemar(first: &[bool], second: &[bool]) -> McNemar {
    assert_eq!(first.len(), second.len(), "each item has its partner");
    let pairs = || first.iter().zip(second);
    let only_first = pairs().filter(|(a, b)| **a && !**b).count() as u64;
    let only_second = pairs().filter(|(a, b)| !**a && **b).count() as u64;
    let (p, test) = probability(only_first, only_second);
    McNemar {
        only_first,
        only_second,
        p,
        test,
    }
}

fn probability(b: u64, c: u64) -> (f64, &'static str) {
    let (fewer, all) = (b.min(c), b + c);
    if all == 0 {
        return (1.0, "McNemar's exact test");
    }
    let even = Binomial::new(0.5, all).expect("a fair coin");
    let exact = 2.0 * even.cdf(fewer);
    match all <= FEW {
        true => (exact.min(1.0), "McNemar's exact test"),
        false => {
            let mid = match b == c {
                true => 1.0,
                false => exact - even.pmf(fewer),
            };
            (mid.min(1.0), "McNemar's test, mid-p")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items(both: usize, first: usize, second: usize) -> (Vec<bool>, Vec<bool>) {
        let mut pairs = vec![(true, true); both];
        pairs.extend(vec![(true, false); first]);
        pairs.extend(vec![(false, true); second]);
        pairs.into_iter().unzip()
    }

    #[test]
    fn known_tables() {
        // 2 (1 + 8) / 2^8.
        let (a, b) = items(12, 1, 7);
        let found = mcnemar(&a, &b);
        assert_eq!((found.only_first, found.only_second), (1, 7));
        assert!((found.p - 0.070_312_5).abs() < 1e-9, "{found:?}");
        assert_eq!(found.test, "McNemar's exact test");
        let (a, b) = items(100, 59, 6);
        let found = mcnemar(&a, &b);
        assert!(found.p < 1e-8, "{found:?}");
        assert_eq!(found.test, "McNemar's test, mid-p");
        let (a, b) = items(5, 0, 0);
        assert_eq!(mcnemar(&a, &b).p, 1.0);
        let (a, b) = items(5, 20, 20);
        assert_eq!(mcnemar(&a, &b).p, 1.0);
    }

    /// Every way to toss `all` coins, counted by Pascal's triangle.
    fn by_counting(b: u64, c: u64) -> (f64, f64) {
        let all = (b + c) as usize;
        let mut row = vec![1.0_f64];
        for _ in 0..all {
            let left = row.iter().copied().chain([0.0]);
            let right = [0.0].into_iter().chain(row.iter().copied());
            row = left.zip(right).map(|(x, y)| (x + y) / 2.0).collect();
        }
        let fewer = b.min(c) as usize;
        let tail: f64 = row[..=fewer].iter().sum();
        (2.0 * tail, row[fewer])
    }

    proptest! {
        #[test]
        fn p_is_what_counting_gives(b in 0_u64..60, c in 0_u64..60) {
            let (p, test) = probability(b, c);
            let (exact, point) = by_counting(b, c);
            let expected = match test {
                "McNemar's exact test" => exact.min(1.0),
                _ if b == c => 1.0,
                _ => exact - point,
            };
            prop_assert!((p - expected).abs() < 1e-9, "{p} instead of {expected}");
            prop_assert_eq!(probability(c, b), (p, test));
        }
    }
}
