//! Requests to a model and its answers, as Arrow streams or as JSON: the program chooses when it starts.
//!
//! ```text
//! it starts:   {"ablate": "model/1", "format": "arrow" or "json"}
//! we ask:      {"ask": "probabilities"} and a table with the column `items`, or "items" in the header
//! it answers:  {"answer": "probabilities"} and a table with the column `probabilities`, or likewise in the header;
//!              {"error": "…"} if it cannot
//! ```

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Builder, ListBuilder, PrimitiveArray, StringArray,
};
use arrow::datatypes::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde_json::{Value, json};

use crate::programs::serving::Frame;

/// What a program is asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// Texts.
    Texts(Vec<String>),
    /// Ids of tokens.
    Tokens(Vec<Vec<u32>>),
}

/// How tables travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As Arrow streams.
    Arrow,
    /// As JSON.
    Json,
}

/// The protocol that this version speaks.
const PROTOCOL: &str = "model/1";

/// How far probabilities may be from adding up to 1.
const ROUNDING: f64 = 1e-3;

/// What a program chose, by its first frame.
pub fn greeted(frame: &Frame) -> Result<Format, String> {
    let said = |name: &str| frame.header.get(name).and_then(Value::as_str);
    match (said("ablate"), said("format")) {
        (Some(PROTOCOL), Some("arrow")) => Ok(Format::Arrow),
        (Some(PROTOCOL), Some("json")) => Ok(Format::Json),
        (Some(other), _) if other != PROTOCOL => Err(format!(
            "speaks the protocol {other}, and this version of ablate {PROTOCOL}"
        )),
        _ => Err("does not greet as a model: call ablate.serve(predict=…)".to_owned()),
    }
}

/// The question for the probabilities of items.
pub fn request(items: &Items, format: Format) -> Frame {
    match (format, items) {
        (Format::Json, Items::Texts(texts)) => Frame {
            header: json!({ "ask": "probabilities", "items": texts }),
            body: Vec::new(),
        },
        (Format::Json, Items::Tokens(rows)) => Frame {
            header: json!({ "ask": "probabilities", "items": rows }),
            body: Vec::new(),
        },
        (Format::Arrow, items) => Frame {
            header: json!({ "ask": "probabilities" }),
            body: stream("items", column(items)),
        },
    }
}

fn column(items: &Items) -> ArrayRef {
    match items {
        Items::Texts(texts) => Arc::new(StringArray::from_iter_values(texts)),
        Items::Tokens(rows) => {
            let mut list = ListBuilder::new(Int32Builder::new());
            for row in rows {
                list.append_value(row.iter().map(|id| Some(*id as i32)));
            }
            Arc::new(list.finish())
        }
    }
}

fn stream(name: &str, column: ArrayRef) -> Vec<u8> {
    let table = RecordBatch::try_from_iter([(name, column)]).expect("one column");
    let mut bytes = Vec::new();
    let writer = StreamWriter::try_new(&mut bytes, table.schema_ref());
    let mut writer = writer.expect("written to memory");
    writer.write(&table).expect("written to memory");
    writer.finish().expect("written to memory");
    drop(writer);
    bytes
}

/// The probabilities that a program answers with; or what is wrong with its answer.
pub fn answer(frame: &Frame, items: usize, classes: usize) -> Result<Vec<Vec<f32>>, String> {
    if let Some(error) = frame.header.get("error").and_then(Value::as_str) {
        return Err(format!("could not answer:\n{}", error.trim_end()));
    }
    let rows = match frame.header.get("probabilities") {
        Some(rows) => serde_json::from_value(rows.clone())
            .map_err(|_| "answered with something other than lists of numbers".to_owned())?,
        None => table(&frame.body)?,
    };
    check(&rows, items, classes)?;
    let row = |row: Vec<f64>| row.into_iter().map(|p| p as f32).collect();
    Ok(rows.into_iter().map(row).collect())
}

fn table(body: &[u8]) -> Result<Vec<Vec<f64>>, String> {
    let unreadable = |error: arrow::error::ArrowError| {
        format!("answered with a table that cannot be read: {error}")
    };
    let mut rows = Vec::new();
    for batch in StreamReader::try_new(body, None).map_err(unreadable)? {
        let batch = batch.map_err(unreadable)?;
        let column = batch.column_by_name("probabilities");
        let column = column.ok_or("answered without the column `probabilities`")?;
        for row in 0..column.len() {
            let numbers = list(column, row).as_deref().and_then(numbers);
            rows.push(
                numbers
                    .ok_or("answered with a column `probabilities` that has no lists of floats")?,
            );
        }
    }
    Ok(rows)
}

fn list(column: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let small = column.as_list_opt::<i32>().map(|lists| lists.value(row));
    let large = || column.as_list_opt::<i64>().map(|lists| lists.value(row));
    let fixed = || {
        column
            .as_fixed_size_list_opt()
            .map(|lists| lists.value(row))
    };
    small.or_else(large).or_else(fixed)
}

fn numbers(list: &dyn Array) -> Option<Vec<f64>> {
    fn all<T: ArrowPrimitiveType>(list: &PrimitiveArray<T>) -> Option<Vec<f64>>
    where
        T::Native: Into<f64>,
    {
        (list.null_count() == 0).then(|| list.values().iter().map(|p| (*p).into()).collect())
    }
    let single = list.as_primitive_opt::<Float32Type>().and_then(all);
    single.or_else(|| list.as_primitive_opt::<Float64Type>().and_then(all))
}

/// Refuses what are not probabilities of the classes.
fn check(rows: &[Vec<f64>], items: usize, classes: usize) -> Result<(), String> {
    if rows.len() != items {
        let got = rows.len();
        return Err(format!(
            "answered with {got} rows, and was asked about {items} items"
        ));
    }
    for (n, row) in rows.iter().enumerate() {
        let sum: f64 = row.iter().sum();
        let within = row.iter().all(|p| (-ROUNDING..=1.0 + ROUNDING).contains(p));
        let problem = match () {
            () if row.len() != classes => {
                format!("has {} numbers, and `classes` is {classes}", row.len())
            }
            () if row.iter().any(|p| !p.is_finite()) => {
                "has a number that is not finite".to_owned()
            }
            () if !within => "has a number that is not between 0 and 1".to_owned(),
            () if (sum - 1.0).abs() > ROUNDING => format!("adds up to {sum:.4}, not to 1"),
            () => continue,
        };
        return Err(format!(
            "answered with probabilities of which row {n} {problem}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(header: Value) -> Frame {
        Frame {
            header,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_program_says_what_it_speaks() {
        let arrow = said(json!({ "ablate": "model/1", "format": "arrow" }));
        assert_eq!(greeted(&arrow), Ok(Format::Arrow));
        let later = said(json!({ "ablate": "model/2", "format": "arrow" }));
        assert_eq!(
            greeted(&later).unwrap_err(),
            "speaks the protocol model/2, and this version of ablate model/1"
        );
        assert!(
            greeted(&said(json!({})))
                .unwrap_err()
                .contains("ablate.serve")
        );
    }

    #[test]
    fn answers_are_probabilities_or_refused() {
        let rows = |rows: Value| answer(&said(json!({ "probabilities": rows })), 1, 2);
        assert_eq!(rows(json!([[0.25, 0.75]])), Ok(vec![vec![0.25, 0.75]]));
        let wrong = [
            (
                json!([]),
                "answered with 0 rows, and was asked about 1 items",
            ),
            (json!([[1.0]]), "row 0 has 1 numbers, and `classes` is 2"),
            (json!([[0.5, 0.6]]), "row 0 adds up to 1.1000, not to 1"),
            (
                json!([[-1.0, 2.0]]),
                "row 0 has a number that is not between 0 and 1",
            ),
            (json!("x"), "something other than lists of numbers"),
        ];
        for (given, expected) in wrong {
            let why = rows(given).unwrap_err();
            assert!(why.ends_with(expected), "{why}");
        }
        let failed = answer(&said(json!({ "error": "Traceback\nNameError\n" })), 1, 2);
        assert_eq!(
            failed.unwrap_err(),
            "could not answer:\nTraceback\nNameError"
        );
    }

    #[test]
    fn arrow_tables_arrive_as_they_were_sent() {
        let asked = request(&Items::Tokens(vec![vec![3, 1], vec![]]), Format::Arrow);
        let mut reader = StreamReader::try_new(asked.body.as_slice(), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        let lists = batch.column(0).as_list::<i32>();
        assert_eq!(
            lists
                .value(0)
                .as_primitive::<arrow::datatypes::Int32Type>()
                .values(),
            &[3, 1]
        );
        assert_eq!((lists.len(), lists.value(1).len()), (2, 0));
        let mut list = ListBuilder::new(arrow::array::Float32Builder::new());
        list.append_value([Some(0.5), Some(f32::NAN)]);
        let nan = Frame {
            header: json!({}),
            body: stream("probabilities", Arc::new(list.finish())),
        };
        let why = answer(&nan, 1, 2).unwrap_err();
        assert!(
            why.ends_with("row 0 has a number that is not finite"),
            "{why}"
        );
    }
}
