//! The one in-memory form of a table: the same content has the same types, however it was made.
//! Knows nothing of Parquet or of files.
//!
//! - text is `Utf8`, bytes are `Binary`; dictionaries, views and run ends are written out;
//! - lists of variable length are `List`, and their items are called `item`;
//! - everything may be null, except the keys of maps: a program that happens to declare a column
//!   as required makes the same bytes as one that does not, and a column does not change its type
//!   when its first null arrives;
//! - metadata is dropped, except keys that start with `ablate.`: pandas, R and others
//!   write their own name and version there.
//!
//! Values are never touched: `-0.0` stays apart from `0.0`, and a NaN keeps its bits.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, ListArray, MapArray, RecordBatch, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, Metadata, Schema};
use arrow::error::ArrowError;

use crate::error::Error;

/// Metadata keys with this start belong to the table's content; all others are dropped.
pub const METADATA_PREFIX: &str = "ablate.";

/// The table in its canonical form. Cheap when it already has it.
pub fn canonical(table: &RecordBatch) -> Result<RecordBatch, Error> {
    let schema = table.schema();
    if schema.fields().is_empty() {
        return Err(Error::not_a_table(
            "a table",
            "it has no columns; give it at least one",
        ));
    }
    let fields = canonical_fields(schema.fields(), "")?;
    let columns = fields
        .iter()
        .zip(table.columns())
        .map(|(field, column)| {
            convert(column, field.data_type()).map_err(|error| {
                Error::not_a_table(format!("column `{}`", field.name()), error.to_string())
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let schema = Schema::new(fields).with_metadata(ours(schema.metadata()));
    RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|error| Error::not_a_table("a table", error.to_string()))
}

/// A schema in words: `x: Int64, words: List(Utf8)`.
pub fn schema_text(schema: &Schema) -> String {
    let columns = schema.fields().iter();
    let columns =
        columns.map(|field| format!("{}: {}", field.name(), type_text(field.data_type())));
    columns.collect::<Vec<_>>().join(", ")
}

fn type_text(data_type: &DataType) -> String {
    match data_type {
        DataType::List(item) => format!("List({})", type_text(item.data_type())),
        DataType::FixedSizeList(item, size) => {
            format!("FixedSizeList({}, {size})", type_text(item.data_type()))
        }
        DataType::Struct(fields) => {
            format!("Struct({})", schema_text(&Schema::new(fields.clone())))
        }
        DataType::Map(entries, _) => format!("Map({})", type_text(entries.data_type())),
        other => other.to_string(),
    }
}

/// The metadata that is content. `Metadata` keeps its keys in order.
fn ours(metadata: &Metadata) -> Metadata {
    metadata
        .iter()
        .filter(|(key, _)| key.starts_with(METADATA_PREFIX))
        .collect()
}

fn canonical_fields(fields: &Fields, parent: &str) -> Result<Fields, Error> {
    let mut seen = HashSet::new();
    for field in fields {
        if !seen.insert(field.name()) {
            return Err(Error::not_a_table(
                format!("column `{parent}{}`", field.name()),
                "two columns have this name; rename one of them",
            ));
        }
    }
    fields
        .iter()
        .map(|field| canonical_field(field, field.name(), true, parent))
        .collect()
}

fn canonical_field(
    field: &Field,
    name: &str,
    nullable: bool,
    parent: &str,
) -> Result<FieldRef, Error> {
    let data_type = canonical_type(field.data_type(), &format!("{parent}{name}"))?;
    let metadata = ours(field.metadata());
    Ok(Arc::new(
        Field::new(name, data_type, nullable).with_metadata(metadata),
    ))
}

fn canonical_type(data_type: &DataType, place: &str) -> Result<DataType, Error> {
    let refuse = |why: &str| Err(Error::not_a_table(format!("column `{place}`"), why));
    let inside = format!("{place}.");
    let item = |field: &FieldRef| canonical_field(field, "item", true, &inside);
    Ok(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => canonical_type(values, place)?,
        DataType::RunEndEncoded(_, values) => canonical_type(values.data_type(), place)?,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::List(item(field)?),
        DataType::FixedSizeList(_, ..1) => {
            return refuse("Parquet has no lists of fixed length 0; drop the column");
        }
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field)?, *size),
        DataType::Struct(fields) if fields.is_empty() => {
            return refuse("Parquet has no structs without fields; drop the column");
        }
        DataType::Struct(fields) => DataType::Struct(canonical_fields(fields, &inside)?),
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return refuse("its map entries are not key-value pairs");
            };
            let [key, value] = &pair[..] else {
                return refuse("its map entries are not key-value pairs");
            };
            // The names that the Parquet specification gives.
            let pair = vec![
                canonical_field(key, "key", false, &inside)?,
                canonical_field(value, "value", true, &inside)?,
            ];
            let entries = Field::new("key_value", DataType::Struct(pair.into()), false);
            DataType::Map(Arc::new(entries), false)
        }
        DataType::Union(..) => {
            return refuse("Parquet has no unions; use one column per type");
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            return refuse("Parquet has no intervals in nanoseconds; use a duration or a number");
        }
        other => other.clone(),
    })
}

/// The same values under the canonical type `to`.
fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    Ok(match (array.data_type(), to) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let from = array.as_struct();
            let columns = convert_all(from.columns(), fields)?;
            Arc::new(StructArray::try_new(
                fields.clone(),
                columns,
                from.nulls().cloned(),
            )?)
        }
        (DataType::List(_), DataType::List(item)) => {
            let from = array.as_list::<i32>();
            let values = convert(from.values(), item.data_type())?;
            let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
            Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, size)) => {
            let from = array.as_fixed_size_list();
            let values = convert(from.values(), item.data_type())?;
            let nulls = from.nulls().cloned();
            Arc::new(FixedSizeListArray::try_new(
                item.clone(),
                *size,
                values,
                nulls,
            )?)
        }
        (DataType::Map(..), DataType::Map(entries, _)) => {
            let from = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else {
                unreachable!("the canonical form of a map has pairs")
            };
            let columns = convert_all(from.entries().columns(), fields)?;
            let pairs = StructArray::try_new(fields.clone(), columns, None)?;
            let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
            Arc::new(MapArray::try_new(
                entries.clone(),
                offsets,
                pairs,
                nulls,
                false,
            )?)
        }
        (
            DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item),
            _,
        ) => convert(&exact_cast(array, &DataType::List(item.clone()))?, to)?,
        (DataType::Dictionary(_, values), _) => convert(&exact_cast(array, values)?, to)?,
        (DataType::RunEndEncoded(_, values), _) => {
            convert(&exact_cast(array, values.data_type())?, to)?
        }
        _ => exact_cast(array, to)?,
    })
}

fn convert_all(columns: &[ArrayRef], fields: &Fields) -> Result<Vec<ArrayRef>, ArrowError> {
    let pairs = columns.iter().zip(fields);
    pairs
        .map(|(column, field)| convert(column, field.data_type()))
        .collect()
}

fn exact_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    // `safe` would turn a value that does not fit into a null, which is a lost result.
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, to, &options)
}
