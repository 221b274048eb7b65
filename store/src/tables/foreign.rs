//! Reads Parquet files that other programs wrote: pandas, polars, DuckDB, R.
//! They may be cut off, broken, or made to do harm, so nothing that they say is believed:
//! a bad file is an error with a reason, never a panic.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;

use super::canonical::canonical;
use super::codec::collect;
use crate::error::{At, Error};

/// The table in a Parquet file of any program, in canonical form.
pub fn read_foreign(path: &Path) -> Result<RecordBatch, Error> {
    let bytes = fs::read(path).at("read", path)?;
    decode(bytes, || format!("`{}`", path.display()))
}

/// The same of bytes that came from somewhere else.
pub fn decode_foreign(bytes: Vec<u8>) -> Result<RecordBatch, Error> {
    decode(bytes, || "what was given".to_owned())
}

fn decode(bytes: Vec<u8>, name: impl Fn() -> String) -> Result<RecordBatch, Error> {
    let not_a_table = |why: String| Error::not_a_table(name(), why);
    if bytes.is_empty() {
        return Err(not_a_table("the file is empty".into()));
    }
    if bytes.len() < 12 || !bytes.starts_with(b"PAR1") {
        return Err(not_a_table(
            "it is not a Parquet file; write one, for example with `DataFrame.to_parquet`".into(),
        ));
    }
    if !bytes.ends_with(b"PAR1") {
        return Err(not_a_table(
            "the Parquet file is cut off; close it before the program ends".into(),
        ));
    }
    // The reader checks most of what a file says, but not all of it.
    match catch_unwind(AssertUnwindSafe(|| read(Bytes::from(bytes)))) {
        Ok(Ok(table)) => canonical(&table).map_err(|error| match error {
            Error::NotATable { what, why } => not_a_table(format!("{what}: {why}")),
            other => other,
        }),
        Ok(Err(error)) => Err(not_a_table(format!("the Parquet file is corrupt: {error}"))),
        Err(_) => Err(not_a_table("the Parquet file is corrupt".into())),
    }
}

fn read(bytes: Bytes) -> Result<RecordBatch, ParquetError> {
    // A small batch, because the number of rows is the file's own word
    // and memory for all of them would be taken at once.
    const BATCH: usize = 1 << 14;
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    for group in builder.metadata().row_groups() {
        for column in group.columns() {
            if let codec @ (Compression::GZIP(_) | Compression::BROTLI(_) | Compression::LZO) =
                column.compression()
            {
                return Err(ParquetError::General(format!(
                    "column `{}` is compressed with {codec}, which is not supported; use zstd, lz4, snappy or none",
                    column.column_path()
                )));
            }
        }
    }
    let schema = builder.schema().clone();
    collect(schema, builder.with_batch_size(BATCH).build()?)
}
