//! Tables from arrow-rs to polars and back through the Arrow C data interface: both sides
//! point at the same memory. The only `unsafe` of the crate is here.

use std::mem::transmute;
use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray, make_array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use polars::prelude::{
    Column, CompatLevel, DataFrame, DataType as Type, PlSmallStr, PolarsResult, Series,
};
use polars_arrow::ffi;

use crate::Failure;

/// A table as a polars frame.
pub fn to_polars(name: &str, table: &RecordBatch) -> Result<DataFrame, Failure> {
    let schema = table.schema();
    let mut columns = Vec::with_capacity(table.num_columns());
    for (field, array) in schema.fields().iter().zip(table.columns()) {
        let unreadable = |why: String| {
            Failure::new(format!(
                "column `{}` of `{name}` has the type {}, which SQL cannot read: {why}",
                field.name(),
                field.data_type()
            ))
        };
        let array = match readable(field.data_type()) {
            _ if field.data_type().is_integer() => signed(array).map_err(|e| {
                unreadable(e.to_string()).help(
                    "integers are signed, with 64 bits: store larger ones as strings or floats",
                )
            })?,
            Some(wider) => cast(array, &wider).map_err(|e| unreadable(e.to_string()))?,
            None => array.clone(),
        };
        let series = import(field.name(), &array).map_err(|e| unreadable(e.to_string()))?;
        columns.push(Column::from(series));
    }
    DataFrame::new(table.num_rows(), columns)
        .map_err(|e| Failure::new(format!("`{name}` cannot be handed to SQL: {e}")))
}

/// A polars frame as a table.
pub fn to_arrow(frame: DataFrame) -> Result<RecordBatch, Failure> {
    let rows = frame.height();
    let mut fields = Vec::with_capacity(frame.width());
    let mut columns = Vec::with_capacity(frame.width());
    for column in frame.columns() {
        let series = column.as_materialized_series().rechunk();
        let cannot = |e: String| {
            Failure::new(format!(
                "column `{}` of the result has the type {}, which cannot be stored: {e}",
                series.name(),
                series.dtype()
            ))
            .help("convert it in the query: CAST(… AS DOUBLE)")
            .at("query")
        };
        let array = export(&series).map_err(|e| cannot(e.to_string()))?;
        let array = match array.data_type().is_integer() {
            true => signed(&array).map_err(|e| cannot(e.to_string()))?,
            false => array,
        };
        fields.push(Field::new(
            series.name().as_str(),
            array.data_type().clone(),
            true,
        ));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(
        |e| {
            Failure::new(format!(
                "polars gave a table that does not fit together: {e}"
            ))
        },
    )
}

/// Integers as SQL has them: signed, 64 bits. One that does not fit is an error, not a null.
fn signed(integers: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(integers, &DataType::Int64, &strict)
}

/// The type to convert to first, for types that our polars is built without.
fn readable(ty: &DataType) -> Option<DataType> {
    let inner = |field: &Arc<Field>| {
        let ty = readable(field.data_type())?;
        Some(Arc::new(field.as_ref().clone().with_data_type(ty)))
    };
    Some(match ty {
        DataType::UInt8 | DataType::UInt16 => DataType::UInt32,
        DataType::Float16 => DataType::Float32,
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, values) => readable(values).unwrap_or_else(|| (**values).clone()),
        DataType::List(field) => DataType::List(inner(field)?),
        DataType::LargeList(field) => DataType::LargeList(inner(field)?),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(inner(field)?, *size),
        _ => return None,
    })
}

fn import(name: &str, array: &ArrayRef) -> PolarsResult<Series> {
    let exported = to_ffi(&array.to_data());
    let (array, schema) = exported.map_err(|e| polars_arrow_error(&e))?;
    // SAFETY: arrow-rs filled both structs as the C data interface prescribes, and both crates
    // lay them out as it prescribes (`repr(C)`), so one crate's struct is the other's.
    // `schema` is only borrowed; `array` is moved, and its release callback, which keeps the
    // buffers alive, is called once: by polars, when the series is dropped.
    let array = unsafe {
        let schema: &ffi::ArrowSchema = &*std::ptr::from_ref(&schema).cast();
        let field = ffi::import_field_from_c(schema)?;
        ffi::import_array_from_c(
            transmute::<FFI_ArrowArray, ffi::ArrowArray>(array),
            field.dtype,
        )?
    };
    Series::try_from((PlSmallStr::from(name), array))
}

fn export(series: &Series) -> Result<ArrayRef, Box<dyn std::error::Error>> {
    // polars gives nulls a buffer, which arrow-rs refuses: make them here.
    if series.dtype() == &Type::Null {
        return Ok(Arc::new(NullArray::new(series.len())));
    }
    let series = match without_nulls(series.dtype()) {
        Some(ty) => &series.cast(&ty)?,
        None => series,
    };
    let level = CompatLevel::oldest();
    let field = series.dtype().to_arrow_field(series.name().clone(), level);
    let array = ffi::export_array_to_c(series.to_arrow(0, level));
    let schema = ffi::export_field_to_c(&field);
    // SAFETY: as above, the other way round: polars filled both structs, arrow-rs takes both
    // over and calls each release callback once.
    let data = unsafe {
        let schema = transmute::<ffi::ArrowSchema, FFI_ArrowSchema>(schema);
        from_ffi(transmute::<ffi::ArrowArray, FFI_ArrowArray>(array), &schema)?
    };
    Ok(make_array(data))
}

/// The type with booleans for the nulls inside lists, if it holds any.
fn without_nulls(ty: &Type) -> Option<Type> {
    let inner = |ty: &Type| match ty {
        Type::Null => Some(Type::Boolean),
        other => without_nulls(other),
    };
    Some(match ty {
        Type::List(items) => Type::List(Box::new(inner(items)?)),
        Type::Array(items, width) => Type::Array(Box::new(inner(items)?), *width),
        _ => return None,
    })
}

fn polars_arrow_error(error: &ArrowError) -> polars::error::PolarsError {
    polars::error::PolarsError::ComputeError(error.to_string().into())
}
