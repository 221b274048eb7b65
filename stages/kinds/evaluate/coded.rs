//! Columns as names: collected tables have long runs of equal values, and draws group millions of rows.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};

/// A column's values as texts, each different one printed once.
pub struct Coded {
    /// The different texts, in the order in which they appear.
    pub texts: Vec<String>,
    /// For each row, the place of its text.
    pub codes: Vec<usize>,
}

impl Coded {
    /// None for a column with nulls, or of something else than strings and numbers.
    pub fn new(column: &ArrayRef) -> Option<Coded> {
        if column.null_count() > 0 {
            return None;
        }
        let rows = 0..column.len();
        Some(match column.data_type() {
            DataType::Utf8 => {
                let column = column.as_string::<i32>();
                Coded::of(rows.map(|i| column.value(i)))
            }
            DataType::Boolean => {
                let column = column.as_boolean();
                Coded::of(rows.map(|i| column.value(i)))
            }
            DataType::Int64 => Coded::of(column.as_primitive::<Int64Type>().values().iter()),
            // By their bits: the two zeros are equal, and print differently.
            DataType::Float64 => Coded::of(
                column
                    .as_primitive::<Float64Type>()
                    .values()
                    .iter()
                    .map(|x| Bits(x.to_bits())),
            ),
            _ => return None,
        })
    }

    /// Equal values must print alike.
    fn of<T: PartialEq + ToString>(values: impl Iterator<Item = T>) -> Coded {
        let (mut texts, mut codes) = (Vec::new(), Vec::with_capacity(values.size_hint().0));
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut last: Option<(T, usize)> = None;
        for value in values {
            let code = match &last {
                Some((other, code)) if *other == value => *code,
                _ => {
                    let text = value.to_string();
                    *known.entry(text).or_insert_with_key(|text| {
                        texts.push(text.clone());
                        texts.len() - 1
                    })
                }
            };
            codes.push(code);
            last = Some((value, code));
        }
        Coded { texts, codes }
    }

    /// The text of a row.
    pub fn text(&self, row: usize) -> &str {
        &self.texts[self.codes[row]]
    }
}

/// A float that equals another if all its bits do.
#[derive(PartialEq)]
struct Bits(u64);

impl std::fmt::Display for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f64::from_bits(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn each_text_is_there_once_in_the_order_of_rows() {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["b", "b", "a", "b", "a"]));
        let coded = Coded::new(&column).unwrap();
        assert_eq!(coded.texts, ["b", "a"]);
        assert_eq!(coded.codes, [0, 0, 1, 0, 1]);
        assert_eq!(coded.text(3), "b");
    }

    #[test]
    fn floats_that_print_alike_are_one_and_those_that_do_not_are_two() {
        let nan = f64::from_bits(f64::NAN.to_bits() ^ 1);
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, nan, 0.0]));
        let coded = Coded::new(&column).unwrap();
        assert_eq!(coded.texts, ["0", "-0", "NaN"]);
        assert_eq!(coded.codes, [0, 1, 2, 2, 0]);
    }

    #[test]
    fn nulls_are_no_names() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        assert!(Coded::new(&column).is_none());
    }
}
