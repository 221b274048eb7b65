//! Columns of any table as numbers or words. Knows nothing of what they mean.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// A column as numbers; `None` where it is null or no number. `None` if it holds no numbers.
pub fn numbers(table: &RecordBatch, name: &str) -> Option<Vec<Option<f64>>> {
    let column = table.column_by_name(name)?;
    let kind = column.data_type();
    if !kind.is_numeric() && !matches!(kind, DataType::Boolean | DataType::Null) {
        return None;
    }
    let floats = cast(column, &DataType::Float64).ok()?;
    let floats = floats.as_primitive::<Float64Type>();
    Some(floats.iter().collect())
}

/// A column as integers.
pub fn wholes(table: &RecordBatch, name: &str) -> Option<Vec<Option<i64>>> {
    let column = table.column_by_name(name)?;
    if !column.data_type().is_integer() && column.data_type() != &DataType::Null {
        return None;
    }
    let wholes = cast(column, &DataType::Int64).ok()?;
    Some(wholes.as_primitive::<Int64Type>().iter().collect())
}

/// A column of booleans; null is false.
pub fn flags(table: &RecordBatch, name: &str) -> Option<Vec<bool>> {
    let column = table.column_by_name(name)?.as_boolean_opt()?;
    Some(column.iter().map(|flag| flag == Some(true)).collect())
}

/// A column in words; empty where it is null.
pub fn texts(table: &RecordBatch, name: &str) -> Option<Vec<String>> {
    let column = table.column_by_name(name)?;
    Some(words(column))
}

/// Every value in words; empty where it is null.
pub fn words(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("");
    match ArrayFormatter::try_new(column, &options) {
        Ok(format) => (0..column.len())
            .map(|row| format.value(row).to_string())
            .collect(),
        Err(error) => vec![error.to_string(); column.len()],
    }
}

/// A column of lists as numbers, row by row; an empty list where it is null.
pub fn lists(table: &RecordBatch, name: &str) -> Option<Vec<Vec<f64>>> {
    let column = table.column_by_name(name)?;
    let list = cast_list(column)?;
    let list = list.as_list_opt::<i32>()?;
    let row = |at: usize| match list.is_null(at) {
        true => Vec::new(),
        false => {
            let values = list.value(at);
            let values = values.as_primitive::<Float64Type>();
            values
                .iter()
                .map(|value| value.unwrap_or(f64::NAN))
                .collect()
        }
    };
    Some((0..list.len()).map(row).collect())
}

/// Whether a column is a list of floats, as signals and images are.
pub fn is_signal(table: &RecordBatch, name: &str) -> bool {
    let schema = table.schema();
    let Ok(field) = schema.field_with_name(name) else {
        return false;
    };
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_floating()
        }
        _ => false,
    }
}

fn cast_list(column: &ArrayRef) -> Option<ArrayRef> {
    let item = match column.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item,
        _ => return None,
    };
    if !item.data_type().is_numeric() {
        return None;
    }
    let item = arrow::datatypes::Field::new("item", DataType::Float64, true);
    cast(column, &DataType::List(item.into())).ok()
}

/// Whether every column holds single values that a page can show.
pub fn is_flat(table: &RecordBatch) -> bool {
    let schema = table.schema();
    let mut kinds = schema.fields().iter().map(|field| field.data_type());
    kinds.all(|kind| !kind.is_nested() && !matches!(kind, DataType::Binary | DataType::LargeBinary))
}

/// At most four decimals, as papers have them; a number that is tiny or huge keeps its size.
pub fn short(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && number.is_finite() && !(0.001..1e9).contains(&size) {
        return format!("{number:.3e}");
    }
    let text = format!("{number:.4}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
