//! The paired bootstrap over items: for numbers of items that are not yes or no. B. Efron, Annals of Statistics 7
//! (1979).

use nn::Stream;

use super::draw::resample;
use super::interval::{Method, percentile_interval};
use super::paired::PairedDifference;
use super::student::mean;

/// The mean difference `a - b` over items, by so many draws of items; none without items. `a` and `b` are as long.
/// One item has no interval.
pub fn paired_bootstrap(
    a: &[f64],
    b: &[f64],
    draws: usize,
    stream: Stream,
) -> Option<PairedDifference> {
    assert_eq!(a.len(), b.len(), "each item has its partner");
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let centre = mean(&differences)?;
    let n = differences.len();
    let drawn: Vec<f64> = (0..draws)
        .map(|draw| {
            let counts = resample(n, stream.item(draw as u64));
            let each = differences.iter().zip(&counts);
            each.map(|(x, count)| x * f64::from(*count)).sum::<f64>() / n as f64
        })
        .collect();
    // Shifted so that there is no difference, how often is it as large? The data itself counts as one draw, so
    // that p is never 0.
    let as_large = drawn
        .iter()
        .filter(|x| (**x - centre).abs() >= centre.abs())
        .count();
    let several = n > 1;
    Some(PairedDifference {
        mean: centre,
        pairs: n,
        p: several.then(|| (as_large + 1) as f64 / (draws + 1) as f64),
        interval: percentile_interval(drawn, Method::Bootstrap).filter(|_| several),
        test: "paired bootstrap over items",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_normal_approximation() {
        let a: Vec<f64> = (0..400).map(|i| f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..400).map(|i| f64::from(i % 5)).collect();
        let found = paired_bootstrap(&a, &b, 4000, Stream::new(1, "test")).unwrap();
        let exact = super::super::paired_difference(&a, &b).unwrap();
        let (drawn, normal) = (found.interval.unwrap(), exact.interval.unwrap());
        assert_eq!((found.mean, found.pairs), (exact.mean, 400));
        assert!(
            (drawn.low - normal.low).abs() < 0.02,
            "{drawn:?} {normal:?}"
        );
        assert!((drawn.high - normal.high).abs() < 0.02, "{drawn:?}");
        assert_eq!(found.p, Some(1.0 / 4001.0));
    }

    #[test]
    fn the_same_stream_gives_the_same_interval_and_equal_columns_no_difference() {
        let (a, b) = ([1.0, 5.0, 2.0, 4.0], [2.0, 3.0, 2.0, 1.0]);
        let ask = |seed| paired_bootstrap(&a, &b, 200, Stream::new(seed, "test")).unwrap();
        assert_eq!(ask(1), ask(1));
        let equal = paired_bootstrap(&a, &a, 200, Stream::new(1, "test")).unwrap();
        assert_eq!((equal.mean, equal.p), (0.0, Some(1.0)));
        let one = paired_bootstrap(&[1.0], &[0.0], 200, Stream::new(1, "test")).unwrap();
        assert_eq!((one.interval, one.p), (None, None));
    }
}
