//! One table to and from the one Parquet form in which the store keeps it.
//! Knows nothing of digests, of folders, or of who made the table.
//!
//! Every property of the writer is set here rather than left to a default,
//! because a default that changes with a new version of the crate would change every digest.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ArrowSchemaConverter, ProjectionMask};
use parquet::basic::{Compression, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::SchemaDescriptor;

use super::canonical::canonical;
use super::content_size::content_size;
use super::fixed_lists::FixedLists;
use crate::error::Error;

/// The table's bytes: the same content gives the same bytes, however it was made.
pub fn encode(table: &RecordBatch) -> Result<Vec<u8>, Error> {
    encode_canonical(&canonical(table)?)
}

fn encode_canonical(table: &RecordBatch) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    write(table, &mut bytes).map_err(|error| Error::not_a_table("a table", error.to_string()))?;
    Ok(bytes)
}

/// The table in bytes that [`encode`] made. For files of other programs see
/// [`read_foreign`](crate::read_foreign), which trusts them less.
pub fn decode(bytes: Bytes) -> Result<RecordBatch, Error> {
    let read = || -> Result<_, ParquetError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
        let rows = builder.metadata().file_metadata().num_rows().max(1) as usize;
        let schema = builder.schema().clone();
        let mut taken = whole_columns(bytes, &schema)?;
        // One batch for the whole table, so that nothing has to be copied together afterwards.
        let builder = builder.with_batch_size(rows);
        if taken.iter().all(Option::is_none) {
            return collect(schema, builder.build()?);
        }
        let rest: Vec<usize> = (0..taken.len()).filter(|n| taken[*n].is_none()).collect();
        if !rest.is_empty() {
            let columns = builder.metadata().file_metadata().schema_descr();
            let mask = ProjectionMask::roots(columns, rest.iter().copied());
            let part = Arc::new(schema.project(&rest)?);
            let part = collect(part, builder.with_projection(mask).build()?)?;
            for (n, column) in rest.iter().zip(part.columns()) {
                taken[*n] = Some(column.clone());
            }
        }
        let columns = taken.into_iter().flatten().collect();
        Ok(RecordBatch::try_new(schema, columns)?)
    };
    let table = read().map_err(|error| Error::not_a_table("an object", error.to_string()))?;
    canonical(&table)
}

/// Some columns of the table in bytes that [`encode`] made, in its order.
pub(crate) fn decode_columns(bytes: Bytes, names: &[&str]) -> Result<RecordBatch, Error> {
    let read = || -> Result<_, ParquetError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
        let rows = builder.metadata().file_metadata().num_rows().max(1) as usize;
        let schema = builder.schema().clone();
        let wanted = |n: &usize| names.contains(&schema.field(*n).name().as_str());
        let places: Vec<usize> = (0..schema.fields().len()).filter(wanted).collect();
        let columns = builder.metadata().file_metadata().schema_descr();
        let mask = ProjectionMask::roots(columns, places.iter().copied());
        let part = Arc::new(schema.project(&places)?);
        let builder = builder.with_batch_size(rows).with_projection(mask);
        collect(part, builder.build()?)
    };
    let table = read().map_err(|error| Error::not_a_table("an object", error.to_string()))?;
    canonical(&table)
}

/// Columns that need no look at levels.
fn whole_columns(bytes: Bytes, schema: &Schema) -> Result<Vec<Option<ArrayRef>>, ParquetError> {
    let fixed = |field: &FieldRef| matches!(field.data_type(), DataType::FixedSizeList(..));
    let mut columns = vec![None; schema.fields().len()];
    if schema.fields().iter().any(fixed) {
        let file = FixedLists::new(bytes)?;
        for (n, field) in schema.fields().iter().enumerate() {
            columns[n] = file.column(n, field)?;
        }
    }
    Ok(columns)
}

/// All batches as one, under the file's schema: batches come without its metadata,
/// and a reader of no rows yields no batch at all.
pub(crate) fn collect(
    schema: SchemaRef,
    reader: ParquetRecordBatchReader,
) -> Result<RecordBatch, ParquetError> {
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let columns = match &batches[..] {
        [] => return Ok(RecordBatch::new_empty(schema)),
        [only] => only.columns().to_vec(),
        [first, ..] => concat_batches(first.schema_ref(), &batches)?
            .columns()
            .to_vec(),
    };
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// Writes the bytes of a table that is in canonical form already, a group of rows at a time.
pub(crate) fn write(table: &RecordBatch, to: impl Write + Send) -> Result<(), ParquetError> {
    let metadata = table.schema_ref().metadata().iter();
    let metadata = metadata
        .map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()))
        .collect::<Vec<_>>();
    // The table's metadata goes where every reader of Parquet looks for it,
    // and not a second time into the description of Arrow types.
    let schema = Arc::new(Schema::new(table.schema_ref().fields().clone()));
    let columns = ArrowSchemaConverter::new()
        .with_coerce_types(false)
        .convert(&schema)?;
    let options = ArrowWriterOptions::new()
        .with_properties(properties(&columns, metadata, rows_in_a_group(table)))
        .with_parquet_schema(columns)
        .with_skip_arrow_metadata(false);
    let table = RecordBatch::try_new(schema.clone(), table.columns().to_vec())?;
    let mut writer = ArrowWriter::try_new_with_options(to, schema, options)?;
    writer.write(&table)?;
    writer.close()?;
    Ok(())
}

/// A group of rows is written as one piece, so a large table has groups that fit in memory. What
/// decides is the table's content, never how it lies in memory.
fn rows_in_a_group(table: &RecordBatch) -> usize {
    const MOST: usize = 1 << 20;
    const LARGE: usize = 512 << 20;
    const GROUP: usize = 128 << 20;
    let size = table.columns().iter().map(content_size).sum::<usize>();
    match size > LARGE {
        true => (table.num_rows().div_ceil(size / GROUP)).clamp(1, MOST),
        false => MOST,
    }
}

fn properties(
    columns: &SchemaDescriptor,
    metadata: Vec<KeyValue>,
    rows: usize,
) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by("ablate".to_owned())
        // Version 1 pages: every reader knows them.
        .set_writer_version(WriterVersion::PARQUET_1_0)
        // Measured beside none and zstd-1: a table of two rows takes 19, 14 and 72 µs to encode,
        // and 10,000 sentences take 0.58, 1.30 and 0.32 MB. Most artifacts are small.
        .set_compression(Compression::LZ4_RAW)
        // One minimum and maximum a column, for readers that filter. Page indexes
        // would double the size of the small tables that most artifacts are.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_statistics_truncate_length(Some(64))
        .set_column_index_truncate_length(Some(64))
        .set_write_page_header_statistics(false)
        .set_write_row_group_number_distinct_values(false)
        .set_offset_index_disabled(true)
        .set_bloom_filter_enabled(false)
        .set_content_defined_chunking(None)
        .set_dictionary_enabled(true)
        .set_dictionary_page_size_limit(1 << 20)
        .set_data_page_size_limit(1 << 20)
        .set_data_page_row_count_limit(20_000)
        .set_write_batch_size(1024)
        .set_max_row_group_row_count(Some(rows))
        .set_max_row_group_bytes(None)
        .set_sorting_columns(None)
        .set_coerce_types(false)
        .set_write_path_in_schema(true)
        .set_key_value_metadata((!metadata.is_empty()).then_some(metadata));
    for column in columns.columns() {
        // Floats hardly ever repeat: a dictionary of them costs time and saves nothing.
        if matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE) {
            properties = properties.set_column_dictionary_enabled(column.path().clone(), false);
        }
    }
    properties.build()
}

#[cfg(test)]
mod tests {
    use arrow::array::{FixedSizeListArray, Float32Array};
    use arrow::datatypes::Field;

    use super::*;

    /// Vectors of zeros, which take no memory until somebody looks at them.
    fn vectors(rows: usize, size: usize) -> RecordBatch {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let zeros = Arc::new(Float32Array::from(vec![0.0; rows * size]));
        let column = FixedSizeListArray::new(item, size as i32, zeros, None);
        RecordBatch::try_from_iter([("v", Arc::new(column) as ArrayRef)]).unwrap()
    }

    #[test]
    fn only_large_tables_are_written_in_smaller_groups() {
        assert_eq!(rows_in_a_group(&vectors(400_000, 100)), 1 << 20);
        assert_eq!(rows_in_a_group(&vectors(1 << 20, 128)), 1 << 20);
        // A little more than 512 MiB: four groups, as even as can be.
        assert_eq!(rows_in_a_group(&vectors((1 << 20) + 8, 128)), (1 << 18) + 2);
        assert_eq!(rows_in_a_group(&vectors(8, 40 << 20)), 1);
    }
}
