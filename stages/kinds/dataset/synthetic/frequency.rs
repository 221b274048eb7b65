//! The set `frequency`: sine waves whose period is inside 5..6, or outside it.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for
//! recurrent neural networks", experiment A. `x(k) = sin(2 pi (0.1 k + phase) / T)` for
//! k = 0..99, phase uniform on (0, T). Class 0: T uniform on (5, 6). Class 1: T uniform on
//! (1, 5) and (6, 100) together; with `halves` half of them are from each interval.
//! Differs: the paper says (0, 5), but a period below 1 aliases at this sampling.

use std::f64::consts::TAU;

use arrow::record_batch::RecordBatch;

use super::options::{Options, Setting, Stream, Synthetic};
use crate::kinds::dataset::catalogue::Schema;
use crate::kinds::dataset::table::Sequences;

const STEPS: usize = 100;

/// The entry in the list.
pub static FREQUENCY: Synthetic = Synthetic {
    name: "frequency",
    title: "Sine waves with a period inside 5..6 or outside it, 100 steps of 0.1",
    schema: Schema::Sequence,
    pairs: false,
    labels: &["inside", "outside"],
    file: "stages/kinds/dataset/synthetic/frequency.rs",
    splits: &[("train", 10_000), ("dev", 2_000), ("test", 2_000)],
    options: &[("halves", Setting::Flag(false))],
    make,
};

/// Rows of the classes in turn, each from a random stream of its own, so that more rows
/// begin with the same ones.
fn make(options: &Options, seed: u64) -> RecordBatch {
    let mut rows = Sequences::new([STEPS, 1]);
    for (split, count) in options.splits() {
        for n in 0..count {
            let label = (n % 2) as i64;
            let mut random = Stream::new("frequency", seed, split, n);
            let period = period(label, options.flag("halves"), &mut random);
            let phase = random.uniform() * period;
            let x: Vec<f32> = (0..STEPS)
                .map(|k| (TAU * (0.1 * k as f64 + phase) / period).sin() as f32)
                .collect();
            rows.push(&format!("{split}/{n}"), split, label, &x);
        }
    }
    rows.finish()
}

fn period(label: i64, halves: bool, random: &mut Stream) -> f64 {
    let u = random.uniform();
    match (label, halves) {
        (0, _) => 5.0 + u,
        // 4 of the 98 units of length lie below 5.
        (_, false) if u * 98.0 < 4.0 => 1.0 + u * 98.0,
        (_, false) => 2.0 + u * 98.0,
        (_, true) if u < 0.5 => 1.0 + u * 8.0,
        (_, true) => 6.0 + (u - 0.5) * 188.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(label: i64, halves: bool) -> Vec<f64> {
        (0..20_000)
            .map(|n| period(label, halves, &mut Stream::new("t", 1, "train", n)))
            .collect()
    }

    fn share(periods: &[f64], low: f64, high: f64) -> f64 {
        periods.iter().filter(|t| **t > low && **t < high).count() as f64 / periods.len() as f64
    }

    #[test]
    fn periods_are_where_the_paper_has_them() {
        assert_eq!(share(&periods(0, false), 5.0, 6.0), 1.0);
        let union = periods(1, false);
        assert_eq!(share(&union, 1.0, 5.0) + share(&union, 6.0, 100.0), 1.0);
        assert!((share(&union, 1.0, 5.0) - 4.0 / 98.0).abs() < 0.005);
        assert!(
            (share(&union, 6.0, 53.0) - 47.0 / 98.0).abs() < 0.01,
            "uniform"
        );
        let halves = periods(1, true);
        assert!((share(&halves, 1.0, 5.0) - 0.5).abs() < 0.01);
        assert!((share(&halves, 6.0, 53.0) - 0.25).abs() < 0.01, "uniform");
    }
}
