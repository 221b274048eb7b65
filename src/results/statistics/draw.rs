//! One draw of what might have been: items resampled with replacement, and a term for the seeds.
//!
//! Bootstrapping three seeds covers 75% instead of 95%, so seeds are not resampled. With x_i the vector of all
//! numbers of seed i, a draw adds
//!
//! ```text
//! sum_i z_i (x_i - mean x) / sqrt(k (k - 1)) / sqrt(chi2_{k-1} / (k - 1))
//! ```
//!
//! with one standard normal z_i per seed and one chi-square per draw. A linear contrast of numbers is then
//! Student's t around its mean, and numbers of the same seeds stay paired.

use nn::Stream;

/// How often each of `n` items is in a sample of `n` with replacement.
pub fn resample(n: usize, stream: Stream) -> Vec<u32> {
    let mut counts = vec![0; n];
    for i in 0..n {
        counts[stream.below(i as u64, n)] += 1;
    }
    counts
}

/// What one draw adds for the seeds, the same for all numbers of them.
pub struct SeedDraw {
    stream: Stream,
}

impl SeedDraw {
    /// The draw of a stream.
    pub fn new(stream: Stream) -> SeedDraw {
        SeedDraw { stream }
    }

    /// The term of a number that has these values, each with its seed. 0 of a single value: nothing is known of how
    /// it varies.
    pub fn term(&self, values: &[(Option<i64>, f64)]) -> f64 {
        let k = values.len();
        if k < 2 {
            return 0.0;
        }
        let mean = values.iter().map(|(_, x)| x).sum::<f64>() / k as f64;
        let normals = self.stream.item(0);
        let around = values
            .iter()
            .map(|(seed, x)| normals.normal(counter(*seed)) * (x - mean));
        let freedom = (k - 1) as f64;
        around.sum::<f64>()
            / (k as f64 * freedom).sqrt()
            / (self.chi_square(k - 1) / freedom).sqrt()
    }

    /// A chi-square number of so many degrees of freedom: a sum of squares of normals.
    fn chi_square(&self, freedom: usize) -> f64 {
        let stream = self.stream.item(freedom as u64);
        let normals = (0..freedom as u64).map(|i| stream.normal(i));
        normals.map(|z| z * z).sum()
    }
}

/// Which number of a stream belongs to a seed.
fn counter(seed: Option<i64>) -> u64 {
    // A normal number takes two of the stream, so that counters have 63 bits.
    seed.map_or(0, |seed| seed as u64) & (u64::MAX >> 1)
}

/// Whether at least so many percent of the draws hold, without rounding.
pub fn share_at_least(holds: usize, draws: usize, percent: usize) -> bool {
    holds * 100 >= draws * percent
}

#[cfg(test)]
mod tests {
    use super::super::student;
    use super::*;

    #[test]
    fn a_sample_has_as_many_items() {
        let counts = resample(50, Stream::new(3, "test"));
        assert_eq!(counts.iter().sum::<u32>(), 50);
        assert!(counts.contains(&0) && counts.iter().any(|count| *count > 1));
        assert!(resample(0, Stream::new(3, "test")).is_empty());
    }

    #[test]
    fn shares_are_exact() {
        assert!(share_at_least(950, 1000, 95) && !share_at_least(949, 1000, 95));
        assert!(share_at_least(0, 0, 95));
    }

    /// The terms of a number are Student's t times its standard error: their quantiles say so.
    #[test]
    fn terms_are_students_t() {
        let stream = Stream::new(1, "test");
        for k in [2, 3, 5, 10] {
            let values: Vec<(Option<i64>, f64)> = (0..k)
                .map(|i| (Some(i as i64), ((i * i) % 7) as f64))
                .collect();
            let plain: Vec<f64> = values.iter().map(|(_, x)| *x).collect();
            let error = student::sd(&plain).unwrap() / (k as f64).sqrt();
            let reach = student::quantile(k - 1) * error;
            let draws = 20_000;
            let beyond = (0..draws)
                .filter(|draw| SeedDraw::new(stream.item(*draw)).term(&values).abs() > reach)
                .count();
            let share = beyond as f64 / draws as f64;
            assert!((0.045..0.055).contains(&share), "k = {k}: {share}");
        }
    }

    #[test]
    fn numbers_of_the_same_seeds_stay_paired() {
        let draw = SeedDraw::new(Stream::new(1, "test"));
        let a = [(Some(7), 0.5), (Some(i64::MAX), 0.7), (Some(2), 0.4)];
        let b = a.map(|(seed, x)| (seed, x + 0.125));
        assert!((draw.term(&a) - draw.term(&b)).abs() < 1e-12);
        assert_ne!(draw.term(&a), 0.0);
        assert_eq!(draw.term(&a[..1]), 0.0);
    }
}
