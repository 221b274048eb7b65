//! One number of a table as it is shown: its mean over executions, on how many items, and how sure it is.

use std::collections::BTreeMap;

use serde::Serialize;

use super::interval::Interval;
use super::student::{mean, mean_interval, sd};
use super::wilson::wilson;

/// A number from one instance along the axis of seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replicate {
    /// The number.
    pub value: f64,
    /// How many items it was measured on, where that is known.
    pub n: Option<u64>,
    /// Which execution it is from: instances of equal results share one.
    pub execution: usize,
}

/// What is shown of a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// The mean over executions.
    pub mean: f64,
    /// How many items it was measured on; the fewest, if executions differ.
    pub n: Option<u64>,
    /// How many executions.
    pub executions: usize,
    /// The standard deviation over executions; none of a single one.
    pub sd: Option<f64>,
    /// The 95% interval: over seeds by Student's t with two or more executions; over items by Wilson's score for
    /// a proportion from one; else none.
    pub interval: Option<Interval>,
}

impl CellSummary {
    /// Of all instances of a number; none without any. An execution counts once, however many instances share it.
    pub fn of(replicates: &[Replicate], proportion: bool) -> Option<CellSummary> {
        let executions: BTreeMap<usize, Replicate> =
            replicates.iter().map(|one| (one.execution, *one)).collect();
        let values: Vec<f64> = executions.values().map(|one| one.value).collect();
        let mean = mean(&values)?;
        let n = executions.values().filter_map(|one| one.n).min();
        let interval = match (values.len(), n) {
            (1, Some(n)) if proportion => wilson(mean, n),
            _ => mean_interval(&values),
        };
        Some(CellSummary {
            mean,
            n,
            executions: values.len(),
            sd: sd(&values),
            interval,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::Method;
    use super::*;

    fn replicates(numbers: &[(f64, usize)]) -> Vec<Replicate> {
        let each = numbers.iter();
        each.map(|(value, execution)| Replicate {
            value: *value,
            n: Some(100),
            execution: *execution,
        })
        .collect()
    }

    #[test]
    fn the_method_follows_from_executions_and_metric() {
        let one = replicates(&[(0.9, 0)]);
        let summary = CellSummary::of(&one, true).unwrap();
        assert_eq!(summary.interval.unwrap().method, Method::Wilson);
        assert_eq!((summary.executions, summary.sd), (1, None));
        assert_eq!(CellSummary::of(&one, false).unwrap().interval, None);
        let three = replicates(&[(0.9, 0), (0.8, 1), (0.85, 2)]);
        let summary = CellSummary::of(&three, true).unwrap();
        assert_eq!(summary.interval.unwrap().method, Method::StudentT);
        assert_eq!((summary.executions, summary.n), (3, Some(100)));
        assert_eq!(CellSummary::of(&[], true), None);
    }

    #[test]
    fn instances_that_share_an_execution_count_once() {
        let copies = replicates(&[(0.9, 0), (0.9, 0), (0.9, 0)]);
        let one = replicates(&[(0.9, 0)]);
        assert_eq!(CellSummary::of(&copies, true), CellSummary::of(&one, true));
        let mixed = replicates(&[(0.5, 0), (0.5, 0), (0.7, 1)]);
        let summary = CellSummary::of(&mixed, false).unwrap();
        assert_eq!((summary.mean, summary.executions), (0.6, 2));
    }
}
