//! Many instances of a stage as one table: their rows one after the other, with the axes
//! that tell them apart as the first columns. Part of the code of every stage with `over`,
//! since it decides what that reads.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use store::Value;

use crate::Failure;
use crate::tables::examples;

/// Puts tables below each other. `rows` holds, for each table, its label for messages and
/// the value of each axis in `axes`.
pub fn collect(
    axes: &[&str],
    rows: &[(String, Vec<Value>, RecordBatch)],
) -> Result<RecordBatch, Failure> {
    let Some((first_label, _, first)) = rows.first() else {
        return Err(Failure::new("there is nothing to collect"));
    };
    let schema = first.schema();
    if let Some(axis) = axes
        .iter()
        .find(|axis| schema.column_with_name(axis).is_some())
    {
        return Err(Failure::new(format!(
            "`{first_label}` already has a column `{axis}`, so the axis `{axis}` cannot become one"
        ))
        .help("rename the axis or the column"));
    }
    let schema = Arc::new(with_all_counters(&schema, rows));
    let mut tables = Vec::with_capacity(rows.len());
    for (label, _, table) in rows {
        tables.push(in_order_of(&schema, table).ok_or_else(|| {
            Failure::new(format!(
                "`{label}` and `{first_label}` cannot be collected: their columns differ\n\
                 {first_label}: {}\n{label}: {}",
                columns(first),
                columns(table)
            ))
        })?);
    }
    let all = concat_batches(tables[0].schema_ref(), &tables).map_err(|error| {
        Failure::new(format!(
            "the instances cannot be put into one table: {error}"
        ))
    })?;
    let mut fields = Vec::with_capacity(axes.len() + all.num_columns());
    let mut arrays = Vec::with_capacity(axes.len() + all.num_columns());
    for (n, axis) in axes.iter().enumerate() {
        let values: Vec<(&Value, usize)> = rows
            .iter()
            .map(|(_, values, table)| (&values[n], table.num_rows()))
            .collect();
        let array = repeated(&values);
        fields.push(Field::new(*axis, array.data_type().clone(), true));
        arrays.push(array);
    }
    fields.extend(
        all.schema()
            .fields()
            .iter()
            .map(|field| field.as_ref().clone()),
    );
    arrays.extend_from_slice(all.columns());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| Failure::new(format!("the collected table is not well formed: {error}")))
}

/// The schema of the first table, and the columns that only some attacks write, of the others: what one attack counts
/// another does not have.
fn with_all_counters(first: &SchemaRef, rows: &[(String, Vec<Value>, RecordBatch)]) -> Schema {
    // Where it is missing, it is null.
    let nullable = |field: &FieldRef| match is_of_some_attacks(field.name()) {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => field.clone(),
    };
    let mut fields: Vec<FieldRef> = first.fields().iter().map(nullable).collect();
    for (_, _, table) in rows {
        for field in table.schema_ref().fields() {
            let known = fields.iter().any(|known| known.name() == field.name());
            if !known && is_of_some_attacks(field.name()) && is_examples(table) {
                fields.push(nullable(field));
            }
        }
    }
    Schema::new(fields)
}

fn is_of_some_attacks(name: &str) -> bool {
    let mut columns = examples::SCHEMA.columns.iter();
    columns.any(|column| column.name == name && column.only.is_some())
}

fn is_examples(table: &RecordBatch) -> bool {
    let has = |name: &&str| table.schema_ref().column_with_name(name).is_some();
    examples::SCHEMA.names().iter().all(has)
}

/// The table with its columns in the schema's order, if it has the same columns. Examples have nulls for what only
/// other attacks write.
fn in_order_of(schema: &SchemaRef, table: &RecordBatch) -> Option<RecordBatch> {
    let known = |field: &&FieldRef| schema.column_with_name(field.name()).is_some();
    if !table
        .schema_ref()
        .fields()
        .iter()
        .all(|field| known(&field))
    {
        return None;
    }
    let column = |field: &FieldRef| match table.schema_ref().column_with_name(field.name()) {
        Some((at, found)) if found.data_type() == field.data_type() => {
            Some(table.column(at).clone())
        }
        None if is_of_some_attacks(field.name()) && is_examples(table) => {
            Some(new_null_array(field.data_type(), table.num_rows()))
        }
        _ => None,
    };
    let columns: Option<Vec<ArrayRef>> = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(schema.clone(), columns?).ok()
}

fn columns(table: &RecordBatch) -> String {
    let fields = table.schema_ref().fields().iter();
    let list: Vec<_> = fields
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    list.join(", ")
}

/// A column of each value repeated. The pipeline has checked that the values fit together.
fn repeated(values: &[(&Value, usize)]) -> ArrayRef {
    fn spread<T: Clone>(values: &[(&Value, usize)], get: impl Fn(&Value) -> T) -> Vec<T> {
        let each = values.iter();
        each.flat_map(|(value, count)| std::iter::repeat_n(get(value), *count))
            .collect()
    }
    let float = |value: &Value| match value {
        Value::Int(int) => *int as f64,
        Value::Float(float) => *float,
        _ => f64::NAN,
    };
    if values
        .iter()
        .all(|(value, _)| matches!(value, Value::Int(_)))
    {
        Arc::new(Int64Array::from(spread(values, |v| {
            v.as_int().unwrap_or_default()
        })))
    } else if values
        .iter()
        .all(|(v, _)| matches!(v, Value::Int(_) | Value::Float(_)))
    {
        Arc::new(Float64Array::from(spread(values, float)))
    } else if values
        .iter()
        .all(|(value, _)| matches!(value, Value::Bool(_)))
    {
        Arc::new(BooleanArray::from(spread(values, |v| {
            *v == Value::Bool(true)
        })))
    } else {
        Arc::new(StringArray::from(spread(values, |v| match v {
            Value::Text(text) => text.clone(),
            other => other.to_string(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    fn table(name: &str, values: Vec<i64>) -> RecordBatch {
        let array: ArrayRef = Arc::new(Int64Array::from(values));
        RecordBatch::try_from_iter([(name, array)]).unwrap()
    }

    fn part(label: &str, axis: Value, table: RecordBatch) -> (String, Vec<Value>, RecordBatch) {
        (label.to_owned(), vec![axis], table)
    }

    #[test]
    fn the_axis_becomes_the_first_column() {
        let rows = [
            part("a[k=1]", Value::Int(1), table("x", vec![5, 6])),
            part("a[k=0.5]", Value::Float(0.5), table("x", vec![7])),
        ];
        let all = collect(&["k"], &rows).unwrap();
        let axis = all
            .column(0)
            .as_any()
            .downcast_ref::<Float64Array>()
            .unwrap();
        assert_eq!(all.schema().field(0).name(), "k");
        assert_eq!(axis.values(), &[1.0, 1.0, 0.5]);
        let x = all.column(1).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(x.values(), &[5, 6, 7]);
    }

    #[test]
    fn different_columns_and_a_taken_name_are_refused_with_both_sides() {
        let rows = [
            part("a[k=1]", Value::Int(1), table("x", vec![5])),
            part("a[k=2]", Value::Int(2), table("y", vec![5])),
        ];
        assert_eq!(
            collect(&["k"], &rows).unwrap_err().message,
            "`a[k=2]` and `a[k=1]` cannot be collected: their columns differ\n\
             a[k=1]: x Int64\na[k=2]: y Int64"
        );
        let taken = collect(&["x"], &rows).unwrap_err();
        assert_eq!(
            taken.message,
            "`a[k=1]` already has a column `x`, so the axis `x` cannot become one"
        );
    }

    /// `none` counts nothing, `replace-word` the candidates that it tried.
    #[test]
    fn examples_have_nulls_for_what_only_other_attacks_count() {
        let examples = |more: &[&str]| {
            let names = examples::SCHEMA.names();
            let names = names.iter().chain(more);
            let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
            let columns: Vec<(&str, ArrayRef)> = names.map(|n| (*n, one.clone())).collect();
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let rows = |more: &'static str| {
            [
                part("a[k=1]", Value::Int(1), examples(&[])),
                part("a[k=2]", Value::Int(2), examples(&[more])),
            ]
        };
        for rows in [rows(examples::QUERIES), {
            let [first, second] = rows(examples::QUERIES);
            [second, first]
        }] {
            let all = collect(&["k"], &rows).unwrap();
            let queries = all.column_by_name(examples::QUERIES).unwrap();
            assert_eq!((queries.len(), queries.null_count()), (2, 1));
        }
        // What no attack writes is a mistake.
        assert!(collect(&["k"], &rows("querys")).is_err());
    }
}
