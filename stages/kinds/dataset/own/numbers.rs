//! Signals out of a user's file: a column of lists of numbers, step by step.
//! JSON lines may also have a list for each step; CSV and TSV have no lists.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type};
use serde_json::Value;
use std::sync::Arc;

use super::cells::{at, no_column};
use crate::Failure;
use crate::kinds::dataset::text::lines;

/// Each row's numbers, and how many there are in a step.
pub struct Signals {
    pub rows: Vec<Vec<f32>>,
    pub channels: usize,
}

impl Signals {
    /// Checks that rows are whole steps of finite numbers.
    fn checked(file: &str, rows: Vec<Vec<f32>>, channels: usize) -> Result<Signals, Failure> {
        for (n, row) in rows.iter().enumerate() {
            if row.is_empty() || row.len() % channels != 0 {
                let found = row.len();
                let what = format!("{found} numbers cannot be divided into steps of {channels}");
                return Err(at(file, n, &what)
                    .help("`channels` of `source` is the number of values per step"));
            }
            if let Some(k) = row.iter().position(|x| !x.is_finite()) {
                return Err(at(file, n, &format!("number {} is {}", k + 1, row[k])));
            }
        }
        Ok(Signals { rows, channels })
    }
}

/// From a file with a JSON object a line.
pub fn jsonl(
    file: &str,
    text: &str,
    column: &str,
    given: Option<usize>,
) -> Result<Signals, Failure> {
    let (mut rows, mut channels) = (Vec::new(), given);
    let full = lines(text).filter(|line| !line.trim().is_empty());
    for (n, line) in full.enumerate() {
        let row: Value =
            serde_json::from_str(line).map_err(|error| at(file, n, &error.to_string()))?;
        let wrong = || at(file, n, &format!("`{column}` is not a list of numbers"));
        let list = row.get(column);
        let list = list.ok_or_else(|| at(file, n, &format!("`{column}` is missing")))?;
        let list = list.as_array().ok_or_else(wrong)?;
        let mut numbers = Vec::new();
        // `[[1, 2], 3, 4]` is two steps of two for one reader, and a mistake for another.
        let stepped = list.first().is_some_and(Value::is_array);
        if let Some(k) = list.iter().position(|entry| entry.is_array() != stepped) {
            let (found, expected) = match stepped {
                true => ("a number", "lists"),
                false => ("a list", "numbers"),
            };
            let entry = &list[k];
            let what = format!(
                "entry {} of `{column}` is {found}, {entry}, after {expected}",
                k + 1
            );
            return Err(at(file, n, &what)
                .help("write a list per step, [[1, 2], [3, 4]], or one flat list"));
        }
        for entry in list {
            let Value::Array(step) = entry else {
                numbers.push(entry.as_f64().ok_or_else(wrong)? as f32);
                continue;
            };
            if *channels.get_or_insert(step.len()) != step.len() || step.is_empty() {
                let (found, known) = (step.len(), channels.unwrap_or_default());
                let what = format!("a step has {found} numbers, and another {known}");
                return Err(at(file, n, &what));
            }
            for number in step {
                numbers.push(number.as_f64().ok_or_else(wrong)? as f32);
            }
        }
        rows.push(numbers);
    }
    Signals::checked(file, rows, channels.unwrap_or(1))
}

/// From a table of any program: lists of any numbers.
pub fn column(
    file: &str,
    table: &arrow::record_batch::RecordBatch,
    column: &str,
    given: Option<usize>,
) -> Result<Signals, Failure> {
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let found = table.column_by_name(column);
    let found = found.ok_or_else(|| no_column(file, column, &names))?;
    let wanted = DataType::List(Arc::new(Field::new("item", DataType::Float32, true)));
    let wrong = || {
        let got = found.data_type();
        Failure::new(format!(
            "{file}: `{column}` holds {got}, not lists of numbers"
        ))
        .at("source")
    };
    let nested = match found.data_type() {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            !field.data_type().is_numeric()
        }
        _ => true,
    };
    if nested {
        return Err(wrong());
    }
    let lists: ArrayRef = cast(found, &wanted).map_err(|_| wrong())?;
    let lists = lists.as_list::<i32>();
    let mut rows = Vec::with_capacity(lists.len());
    for n in 0..lists.len() {
        let row = lists.value(n);
        let row = row.as_primitive::<Float32Type>();
        if lists.is_null(n) || row.null_count() > 0 {
            return Err(at(file, n, &format!("`{column}` is null")));
        }
        rows.push(row.values().to_vec());
    }
    Signals::checked(file, rows, given.unwrap_or(1))
}
