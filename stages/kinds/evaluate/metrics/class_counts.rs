//! What precision, recall and F1 of a class are made of: how often it is actual, predicted and both, after the
//! attack.

use super::rows::AttackedRows;
use crate::Failure;

/// The counts of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassCounts {
    /// The class.
    pub class: i64,
    /// Rows of the class.
    pub actual: u64,
    /// Rows predicted as the class.
    pub predicted: u64,
    /// Rows of the class predicted as such.
    pub correct: u64,
}

impl ClassCounts {
    /// Of every class up to the largest that is actual or predicted.
    pub fn all(rows: &AttackedRows<'_>) -> Result<Vec<ClassCounts>, Failure> {
        let (label, after) = (rows.label()?, rows.predicted_after()?);
        let none = |class| ClassCounts {
            class,
            actual: 0,
            predicted: 0,
            correct: 0,
        };
        let mut counts: Vec<ClassCounts> = rows.classes()?.map(none).collect();
        for (label, after) in label.iter().zip(&after) {
            // Classes are from 0 to the largest; a negative label is nobody's.
            if let Some(of) = usize::try_from(*label).ok().and_then(|l| counts.get_mut(l)) {
                of.actual += 1;
                of.correct += u64::from(label == after);
            }
            if let Some(of) = usize::try_from(*after).ok().and_then(|a| counts.get_mut(a)) {
                of.predicted += 1;
            }
        }
        Ok(counts)
    }

    /// The fraction of rows predicted as the class that have it; none if there are none.
    pub fn precision(&self) -> Option<f64> {
        share(self.correct, self.predicted)
    }

    /// The fraction of rows of the class that were predicted as such; none if there are none.
    pub fn recall(&self) -> Option<f64> {
        share(self.correct, self.actual)
    }

    /// The harmonic mean of the two, `2 correct / (actual + predicted)`; none if the class does not occur.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.correct, self.actual + self.predicted)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
