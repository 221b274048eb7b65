//! The rows of the table `examples` that belong to one number, column by column.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;

use super::option::MetricOption;
use crate::Failure;
use crate::tables::examples::{
    ATTACKED, BACKWARD, Examples, FORWARD, LABEL, P_AFTER, PREDICTED_AFTER, PREDICTED_BEFORE,
    SUCCESS, WORDS_CHANGED,
};

/// Some rows of a table of examples.
pub struct AttackedRows<'a> {
    table: &'a RecordBatch,
    places: &'a [usize],
    options: &'a BTreeMap<String, i64>,
}

impl<'a> AttackedRows<'a> {
    /// The rows at these places, and what a cell set beside its metric.
    pub fn new(
        table: &'a RecordBatch,
        places: &'a [usize],
        options: &'a BTreeMap<String, i64>,
    ) -> AttackedRows<'a> {
        AttackedRows {
            table,
            places,
            options,
        }
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The value of an option.
    pub fn option(&self, option: &MetricOption) -> i64 {
        let given = self.options.get(option.name).copied();
        given.unwrap_or(option.default)
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

    /// The number of words changed.
    pub fn words_changed(&self) -> Result<Vec<i64>, Failure> {
        self.ints(WORDS_CHANGED)
    }

    /// The words changed in successful attacks.
    pub fn words_of_successes(&self) -> Result<Vec<i64>, Failure> {
        let words = self.words_changed()?.into_iter();
        let successes = words.zip(self.success()?).filter(|(_, success)| *success);
        Ok(successes.map(|(words, _)| words).collect())
    }

    /// The model's probabilities after the attack, of as many classes in every row.
    pub fn probabilities_after(&self) -> Result<Vec<Vec<f32>>, Failure> {
        let examples = self.examples();
        let read = |row: &usize| examples.floats(P_AFTER, *row);
        let all: Option<Vec<Vec<f32>>> = self.places.iter().map(read).collect();
        let all = all.ok_or_else(|| missing(P_AFTER))?;
        let classes = all.first().map_or(0, Vec::len);
        match all.iter().all(|p| p.len() == classes && classes > 0) {
            true => Ok(all),
            false => Err(Failure::new(
                "`p_after` has different numbers of classes in these rows",
            )),
        }
    }

    /// The tokens of a text, without the padding at its end. Signals have none.
    pub fn tokens(&self, name: &str) -> Result<Vec<Vec<i32>>, Failure> {
        let mut texts = self.int_lists(name)?;
        for text in &mut texts {
            // [PAD] has the id 0 in every vocabulary that a tokenize stage makes, and in BERT's.
            while text.last() == Some(&0) {
                text.pop();
            }
        }
        Ok(texts)
    }

    /// Lists of integers.
    pub fn int_lists(&self, name: &str) -> Result<Vec<Vec<i32>>, Failure> {
        let examples = self.examples();
        if !examples.has(name) {
            return Err(missing(name));
        }
        let read = |row: &usize| examples.ints(name, *row);
        let lists: Option<Vec<Vec<i32>>> = self.places.iter().map(read).collect();
        lists.ok_or_else(|| {
            Failure::new(format!("`{name}` does not hold lists of integers"))
                .help("signals have no words: this metric is for texts")
        })
    }

    /// What edits were made of or to, in words.
    pub fn edits(&self, name: &str) -> Result<Vec<Vec<String>>, Failure> {
        let examples = self.examples();
        match examples.has(name) {
            true => Ok(self
                .places
                .iter()
                .map(|row| examples.texts(name, *row))
                .collect()),
            false => Err(missing(name)),
        }
    }

    fn examples(&self) -> Examples<'a> {
        Examples::of(self.table)
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
        .help("metrics read the output `examples` of an attack stage")
}
