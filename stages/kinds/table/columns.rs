//! Rows to columns: which columns there are, and of which type each is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, StringArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use store::Value;

use crate::ParamError;

type Row = BTreeMap<String, Value>;

/// The table that the rows say. Without a choice columns are in alphabetical order,
/// because the order of keys in a TOML table carries no meaning.
pub fn build(rows: &[&Row], chosen: Option<Vec<&str>>) -> Result<RecordBatch, ParamError> {
    if rows.is_empty() {
        return Err(error(
            "rows",
            "a table needs at least one row, because the types of its columns come from values",
            "write rows = [{ x = 1 }]",
        ));
    }
    let known: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.keys())
        .map(String::as_str)
        .collect();
    let names = match chosen {
        Some(chosen) => choose(&known, chosen)?,
        None => known.into_iter().collect(),
    };
    if names.is_empty() {
        return Err(error(
            "rows",
            "the rows have no columns",
            "write rows = [{ x = 1 }]",
        ));
    }
    let mut fields = Vec::with_capacity(names.len());
    let mut arrays = Vec::with_capacity(names.len());
    for name in names {
        let values: Vec<Option<&Value>> = rows.iter().map(|row| row.get(name)).collect();
        let shape = shape_of_column(name, &values)?;
        fields.push(Field::new(name, shape.data_type(), true));
        arrays.push(shape.array(&values));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .expect("each array has the type of its field and one value a row"),
    )
}

fn choose<'a>(known: &BTreeSet<&str>, chosen: Vec<&'a str>) -> Result<Vec<&'a str>, ParamError> {
    let mut seen = BTreeSet::new();
    for name in &chosen {
        if !seen.insert(*name) {
            return Err(error(
                "columns",
                &format!("duplicate column `{name}`"),
                "name it once",
            ));
        }
        if !known.contains(name) {
            let list: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            let help = match crate::contract::nearest::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the rows have {}", list.join(", ")),
            };
            return Err(error(
                "columns",
                &format!("no row has a column `{name}`"),
                &help,
            ));
        }
    }
    Ok(chosen)
}

/// What a value, or all values of a column, hold.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Nothing yet: a column of nulls, or the items of an empty list.
    Nothing,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Shape>),
}

impl Shape {
    /// `None` for a table, which no column can hold.
    fn of(value: &Value) -> Result<Shape, Mixed> {
        Ok(match value {
            Value::Bool(_) => Shape::Bool,
            Value::Int(_) => Shape::Int,
            Value::Float(_) => Shape::Float,
            Value::Text(_) => Shape::Text,
            Value::List(items) => {
                let mut inner = Shape::Nothing;
                for item in items {
                    inner = inner.join(Shape::of(item)?)?;
                }
                Shape::List(Box::new(inner))
            }
            Value::Table(_) => return Err(Mixed::Table),
        })
    }

    /// The shape that holds both; integers beside floats become floats.
    fn join(self, other: Shape) -> Result<Shape, Mixed> {
        Ok(match (self, other) {
            (Shape::Nothing, shape) | (shape, Shape::Nothing) => shape,
            (Shape::Int, Shape::Float) | (Shape::Float, Shape::Int) => Shape::Float,
            (Shape::List(a), Shape::List(b)) => Shape::List(Box::new(a.join(*b)?)),
            (a, b) if a == b => a,
            (a, b) => return Err(Mixed::Types(a, b)),
        })
    }

    fn name(&self) -> String {
        match self {
            Shape::Nothing => "nothing".into(),
            Shape::Bool => "a boolean".into(),
            Shape::Int => "an integer".into(),
            Shape::Float => "a float".into(),
            Shape::Text => "a string".into(),
            Shape::List(_) => "a list".into(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Shape::Nothing => DataType::Null,
            Shape::Bool => DataType::Boolean,
            Shape::Int => DataType::Int64,
            Shape::Float => DataType::Float64,
            Shape::Text => DataType::Utf8,
            Shape::List(items) => DataType::List(items.item()),
        }
    }

    fn item(&self) -> Arc<Field> {
        Arc::new(Field::new("item", self.data_type(), true))
    }

    /// The column. Values fit, because the shape was made from them.
    fn array(&self, values: &[Option<&Value>]) -> ArrayRef {
        let values = values.iter().copied();
        match self {
            Shape::Nothing => Arc::new(NullArray::new(values.len())),
            Shape::Bool => Arc::new(BooleanArray::from_iter(values.map(|v| match v {
                Some(Value::Bool(b)) => Some(*b),
                _ => None,
            }))),
            Shape::Int => Arc::new(Int64Array::from_iter(
                values.map(|v| v.and_then(Value::as_int)),
            )),
            Shape::Float => Arc::new(Float64Array::from_iter(values.map(|v| match v {
                Some(Value::Float(x)) => Some(*x),
                Some(Value::Int(i)) => Some(*i as f64),
                _ => None,
            }))),
            Shape::Text => Arc::new(StringArray::from_iter(
                values.map(|v| v.and_then(Value::as_text)),
            )),
            Shape::List(inner) => {
                let lists: Vec<_> = values.map(|v| v.and_then(Value::as_list)).collect();
                let items: Vec<_> = lists
                    .iter()
                    .flat_map(|l| l.unwrap_or_default())
                    .map(Some)
                    .collect();
                let lengths = lists.iter().map(|l| l.map_or(0, <[Value]>::len));
                let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
                Arc::new(ListArray::new(
                    inner.item(),
                    OffsetBuffer::from_lengths(lengths),
                    inner.array(&items),
                    Some(nulls),
                ))
            }
        }
    }
}

/// Why values do not make one column.
enum Mixed {
    Types(Shape, Shape),
    Table,
}

fn shape_of_column(name: &str, values: &[Option<&Value>]) -> Result<Shape, ParamError> {
    let mut shape = Shape::Nothing;
    for (n, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let joined = Shape::of(value).and_then(|found| shape.join(found));
        shape = joined.map_err(|mixed| match mixed {
            Mixed::Types(before, found) => error(
                "rows",
                &format!(
                    "row {}: column `{name}` holds {} here and {} before",
                    n + 1,
                    found.name(),
                    before.name(),
                ),
                "a column holds values of one type; integers and floats may be mixed",
            ),
            Mixed::Table => error(
                "rows",
                &format!("row {}: column `{name}` holds a table", n + 1),
                "a column holds booleans, numbers, strings or lists of those",
            ),
        })?;
    }
    Ok(shape)
}

fn error(param: &'static str, message: &str, help: &str) -> ParamError {
    ParamError {
        param,
        message: message.to_owned(),
        help: Some(help.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float64Type, Int64Type};

    use super::*;

    fn row(entries: &[(&str, Value)]) -> Row {
        entries
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect()
    }

    fn table(rows: &[Row], chosen: Option<Vec<&str>>) -> Result<RecordBatch, ParamError> {
        build(&rows.iter().collect::<Vec<_>>(), chosen)
    }

    fn message(rows: &[Row], chosen: Option<Vec<&str>>) -> String {
        let error = table(rows, chosen).unwrap_err();
        format!(
            "{}: {} ({})",
            error.param,
            error.message,
            error.help.unwrap()
        )
    }

    #[test]
    fn types_come_from_values_and_gaps_are_null() {
        let rows = [
            row(&[
                ("b", Value::Int(1)),
                ("a", Value::Int(1)),
                ("t", Value::Text("x".into())),
            ]),
            row(&[("b", Value::Float(0.5)), ("ok", Value::Bool(true))]),
        ];
        let table = table(&rows, None).unwrap();
        let names: Vec<_> = table
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect();
        assert_eq!(names, ["a", "b", "ok", "t"]);
        let a = table.column(0).as_primitive::<Int64Type>();
        assert_eq!(a.iter().collect::<Vec<_>>(), [Some(1), None]);
        let b = table.column(1).as_primitive::<Float64Type>();
        assert_eq!(b.values(), &[1.0, 0.5]);
        assert_eq!(
            table.column(2).as_boolean().iter().collect::<Vec<_>>(),
            [None, Some(true)]
        );
        assert_eq!(table.column(3).as_string::<i32>().value(0), "x");
    }

    #[test]
    fn lists_nest_and_widen() {
        let list = |items: &[Value]| Value::List(items.to_vec());
        let rows = [
            row(&[("l", list(&[]))]),
            row(&[("l", list(&[Value::Int(1), Value::Float(2.5)]))]),
            row(&[]),
        ];
        let table = table(&rows, None).unwrap();
        let lists = table.column(0).as_list::<i32>();
        assert_eq!(lists.value_length(0), 0);
        assert_eq!(
            lists.value(1).as_primitive::<Float64Type>().values(),
            &[1.0, 2.5]
        );
        assert!(lists.is_null(2));
        let nested = row(&[("l", list(&[list(&[Value::Int(1)]), list(&[])]))]);
        let nested = self::table(&[nested], None).unwrap();
        assert_eq!(
            nested
                .column(0)
                .as_list::<i32>()
                .value(0)
                .as_list::<i32>()
                .len(),
            2
        );
    }

    #[test]
    fn the_choice_gives_the_order() {
        let rows = [row(&[
            ("a", Value::Int(1)),
            ("b", Value::Int(2)),
            ("c", Value::Int(3)),
        ])];
        let table = table(&rows, Some(vec!["c", "a"])).unwrap();
        assert_eq!(table.schema().field(0).name(), "c");
        assert_eq!(table.num_columns(), 2);
        assert_eq!(
            message(
                &[row(&[("accuracy", Value::Int(1))])],
                Some(vec!["acuracy"])
            ),
            "columns: no row has a column `acuracy` (did you mean `accuracy`?)"
        );
        assert_eq!(
            message(&rows, Some(vec!["a", "a"])),
            "columns: duplicate column `a` (name it once)"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mixed = [
            row(&[("x", Value::Int(1))]),
            row(&[]),
            row(&[("x", Value::Text("one".into()))]),
        ];
        assert_eq!(
            message(&mixed, None),
            "rows: row 3: column `x` holds a string here and an integer before \
             (a column holds values of one type; integers and floats may be mixed)"
        );
        let table = [row(&[("x", Value::Table(BTreeMap::new()))])];
        assert!(message(&table, None).starts_with("rows: row 1: column `x` holds a table"));
        assert!(message(&[], None).starts_with("rows: a table needs at least one row"));
    }
}
