//! What a metric is: an entry that describes it, and a measurement. Knows none by name.

use super::option::MetricOption;
use super::rows::AttackedRows;
use crate::Failure;

/// How a metric describes itself.
pub struct MetricEntry {
    /// The name after `metric =`.
    pub name: &'static str,
    /// The file it is in.
    pub file: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The rows that it is measured on: what `n` counts.
    pub rows: &'static str,
    /// The columns of the table `examples` that it reads.
    pub columns: &'static [&'static str],
    /// The placeholders that it fills, if it is one number for each class, pair of classes or count.
    pub placeholders: &'static [&'static str],
}

/// A metric of an attack's examples.
pub trait Metric: Sync {
    /// Its name, file, summary and needs.
    fn entry(&self) -> MetricEntry;

    /// What a cell may set beside it.
    fn options(&self) -> &'static [MetricOption] {
        &[]
    }

    /// The number, or one for each combination of its placeholders.
    fn measure(&self, rows: &AttackedRows<'_>) -> Result<Vec<Number>, Failure>;
}

/// One number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Number {
    /// What it is; none if there was nothing to measure.
    pub value: Option<f64>,
    /// How many rows it was measured on, where that is known.
    pub n: Option<u64>,
    /// Which class, pair of classes or count it is about.
    pub about: Vec<(&'static str, i64)>,
}

impl Number {
    /// The fraction of cases that hold.
    pub fn fraction(cases: impl IntoIterator<Item = bool>) -> Number {
        let (mut hold, mut n) = (0_u64, 0_u64);
        for case in cases {
            hold += u64::from(case);
            n += 1;
        }
        Number {
            value: (n > 0).then(|| hold as f64 / n as f64),
            n: Some(n),
            about: Vec::new(),
        }
    }

    /// The mean.
    pub fn mean(numbers: &[i64]) -> Number {
        let n = numbers.len();
        Number {
            value: (n > 0).then(|| numbers.iter().sum::<i64>() as f64 / n as f64),
            n: Some(n as u64),
            about: Vec::new(),
        }
    }

    /// The mean of numbers that were measured on `n` rows.
    pub fn mean_of(numbers: &[f64], n: usize) -> Number {
        let count = numbers.len();
        Number {
            value: (count > 0).then(|| numbers.iter().sum::<f64>() / count as f64),
            n: Some(n as u64),
            about: Vec::new(),
        }
    }

    /// The median; of an even number the mean of the two in the middle.
    pub fn median(mut numbers: Vec<i64>) -> Number {
        numbers.sort_unstable();
        let (n, half) = (numbers.len(), numbers.len() / 2);
        let value = match n {
            0 => None,
            n if n % 2 == 1 => Some(numbers[half] as f64),
            _ => Some((numbers[half - 1] + numbers[half]) as f64 / 2.0),
        };
        Number {
            value,
            n: Some(n as u64),
            about: Vec::new(),
        }
    }
}
