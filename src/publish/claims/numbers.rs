//! The one row that a claim's query gives: what holds, and the numbers behind it.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Value, json};

/// The column that says whether the claim holds.
const HOLDS: &str = "holds";

/// One number of the row.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its column.
    pub name: String,
    /// For programs, at full precision.
    pub value: Value,
    /// For people.
    pub shown: String,
    /// Whether it is a float that is not a number.
    pub is_nan: bool,
}

/// What the column `holds` says.
#[derive(Debug, PartialEq)]
pub enum Holds {
    /// There is no such column.
    Absent,
    /// It is of this type, not a boolean.
    Wrong(DataType),
    /// NULL, true or false.
    Said(Option<bool>),
}

/// Takes the first row of a table apart.
pub fn take_apart(table: &RecordBatch) -> (Holds, Vec<Number>) {
    let mut holds = Holds::Absent;
    let mut numbers = Vec::with_capacity(table.num_columns());
    for (field, column) in table.schema_ref().fields().iter().zip(table.columns()) {
        if field.name() != HOLDS {
            numbers.push(number(field.name(), column));
            continue;
        }
        holds = match column.data_type() {
            DataType::Boolean if column.is_null(0) => Holds::Said(None),
            DataType::Boolean => Holds::Said(Some(column.as_boolean().value(0))),
            DataType::Null => Holds::Said(None),
            other => Holds::Wrong(other.clone()),
        };
    }
    (holds, numbers)
}

fn number(name: &str, column: &ArrayRef) -> Number {
    let (value, shown, is_nan) = if column.is_null(0) || column.data_type() == &DataType::Null {
        (Value::Null, "NULL".to_owned(), false)
    } else if column.data_type().is_floating() {
        let float = cast(column, &DataType::Float64).map_or(f64::NAN, |floats| {
            floats.as_primitive::<Float64Type>().value(0)
        });
        (json!(float), short(float), float.is_nan())
    } else {
        let options = FormatOptions::default();
        let shown = ArrayFormatter::try_new(column, &options)
            .map_or_else(|error| error.to_string(), |f| f.value(0).to_string());
        let whole = cast(column, &DataType::Int64).ok();
        let whole = whole.filter(|whole| column.data_type().is_integer() && whole.is_valid(0));
        let value = match (whole, column.as_boolean_opt()) {
            (Some(whole), _) => json!(whole.as_primitive::<Int64Type>().value(0)),
            (None, Some(boolean)) => json!(boolean.value(0)),
            (None, None) => json!(shown),
        };
        (value, shown, false)
    };
    Number {
        name: name.to_owned(),
        value,
        shown,
        is_nan,
    }
}

/// Four decimals, as papers have them; more would hide the number.
pub fn short(float: f64) -> String {
    let size = float.abs();
    if float != 0.0 && float.is_finite() && !(0.001..1e9).contains(&size) {
        return format!("{float:.3e}");
    }
    let text = format!("{float:.4}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short_and_keep_their_size() {
        let cases = [
            (0.822_149, "0.8221"),
            (0.5, "0.5"),
            (-12.0, "-12"),
            (0.0, "0"),
            (100.0, "100"),
            (0.000_012_34, "1.234e-5"),
            (3e12, "3.000e12"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (float, expected) in cases {
            assert_eq!(short(float), expected);
        }
    }
}
