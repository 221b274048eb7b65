//! The rows of the table `examples` that belong to one number, column by column.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;

use crate::Failure;
use crate::tables::examples::{
    ATTACKED, BACKWARD, FORWARD, LABEL, PREDICTED_AFTER, PREDICTED_BEFORE, SUCCESS, WORDS_CHANGED,
};

/// Some rows of a table of examples.
pub struct AttackedRows<'a> {
    table: &'a RecordBatch,
    places: &'a [usize],
}

impl<'a> AttackedRows<'a> {
    /// The rows at these places.
    pub fn new(table: &'a RecordBatch, places: &'a [usize]) -> AttackedRows<'a> {
        AttackedRows { table, places }
    }

    fn ints(&self, name: &str) -> Result<Vec<i64>, Failure> {
        let column = self.table.column_by_name(name);
        let column = column.and_then(|c| c.as_primitive_opt::<Int64Type>());
        let column = column.ok_or_else(|| missing(name))?;
        Ok(self.places.iter().map(|row| column.value(*row)).collect())
    }

    fn flags(&self, name: &str) -> Option<Vec<bool>> {
        let column = self.table.column_by_name(name);
        let column = column.and_then(|c| c.as_boolean_opt())?;
        Some(self.places.iter().map(|row| column.value(*row)).collect())
    }

    /// The true classes.
    pub fn label(&self) -> Result<Vec<i64>, Failure> {
        self.ints(LABEL)
    }

    /// The classes predicted after the attack.
    pub fn predicted_after(&self) -> Result<Vec<i64>, Failure> {
        self.ints(PREDICTED_AFTER)
    }

    /// Whether each row was predicted correctly before the attack.
    pub fn correct_before(&self) -> Result<Vec<bool>, Failure> {
        Ok(equal(&self.ints(PREDICTED_BEFORE)?, &self.label()?))
    }

    /// Whether each row was predicted correctly after the attack.
    pub fn correct_after(&self) -> Result<Vec<bool>, Failure> {
        Ok(equal(&self.predicted_after()?, &self.label()?))
    }

    /// Whether the attack succeeded.
    pub fn success(&self) -> Result<Vec<bool>, Failure> {
        self.flags(SUCCESS).ok_or_else(|| missing(SUCCESS))
    }

    /// Whether the attack tried: tables without the column are of attacks that try every row.
    pub fn attacked(&self) -> Vec<bool> {
        let all = || vec![true; self.places.len()];
        self.flags(ATTACKED).unwrap_or_else(all)
    }

    /// Forward and backward passes.
    pub fn queries(&self) -> Result<Vec<i64>, Failure> {
        let (forward, backward) = (self.ints(FORWARD)?, self.ints(BACKWARD)?);
        Ok(forward.iter().zip(backward).map(|(f, b)| f + b).collect())
    }

    /// The words changed in successful attacks.
    pub fn words_of_successes(&self) -> Result<Vec<i64>, Failure> {
        let words = self.ints(WORDS_CHANGED)?.into_iter();
        let successes = words.zip(self.success()?).filter(|(_, success)| *success);
        Ok(successes.map(|(words, _)| words).collect())
    }

    /// All classes up to the largest that is actual or predicted.
    pub fn classes(&self) -> Result<std::ops::Range<i64>, Failure> {
        let (label, after) = (self.label()?, self.predicted_after()?);
        let largest = label.into_iter().chain(after).max();
        Ok(0..largest.map_or(0, |class| class + 1))
    }
}

fn equal(a: &[i64], b: &[i64]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| a == b).collect()
}

fn missing(name: &str) -> Failure {
    Failure::new(format!("no column `{name}`"))
}
