//! The mean of a few numbers, its standard deviation and Student's t interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::interval::{Interval, Method, TAIL};

/// The mean; none of no numbers.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    let n = numbers.len();
    (n > 0).then(|| numbers.iter().sum::<f64>() / n as f64)
}

/// The standard deviation of a sample, with n - 1 below; none of fewer than two numbers.
pub fn sd(numbers: &[f64]) -> Option<f64> {
    let n = numbers.len();
    let mean = mean(numbers).filter(|_| n > 1)?;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some((squares / (n - 1) as f64).sqrt())
}

/// The 95% interval of the mean by Student's t; none of fewer than two numbers.
pub fn mean_interval(numbers: &[f64]) -> Option<Interval> {
    let (mean, sd) = (mean(numbers)?, sd(numbers)?);
    let half = quantile(numbers.len() - 1) * sd / (numbers.len() as f64).sqrt();
    Some(Interval {
        low: mean - half,
        high: mean + half,
        method: Method::StudentT,
    })
}

/// How many standard errors a 95% interval reaches to either side.
pub(super) fn quantile(freedom: usize) -> f64 {
    distribution(freedom).inverse_cdf(1.0 - TAIL)
}

/// The probability of a t at least as far from 0, to either side.
pub(super) fn two_sided(t: f64, freedom: usize) -> f64 {
    (2.0 * distribution(freedom).cdf(-t.abs())).min(1.0)
}

fn distribution(freedom: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom as f64).expect("at least one degree of freedom")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (4, 2.776_445_105),
            (9, 2.262_157_163),
            (1000, 1.962_339_081),
        ] {
            let found = quantile(freedom);
            assert!((found - expected).abs() < 1e-6, "{freedom}: {found}");
            assert!((two_sided(found, freedom) - 0.05).abs() < 1e-9);
        }
        assert_eq!(two_sided(0.0, 3), 1.0);
    }

    #[test]
    fn an_interval_needs_two_numbers() {
        assert_eq!(mean(&[]), None);
        assert_eq!((sd(&[1.0]), mean_interval(&[1.0])), (None, None));
        let interval = mean_interval(&[0.80, 0.82, 0.84]).unwrap();
        assert!((interval.low - 0.770_317).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 0.869_683).abs() < 1e-6, "{interval:?}");
        let equal = mean_interval(&[0.5, 0.5]).unwrap();
        assert_eq!((equal.low, equal.high), (0.5, 0.5));
    }
}
