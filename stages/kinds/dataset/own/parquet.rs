//! Cells out of a Parquet file of any program.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use store::Digest;

use super::cells::{Cells, at, no_column};
use super::source::{Source, same};
use crate::{Failure, SourceFile};

/// The table of a Parquet file whose contents are those of the key.
pub fn open(source: &Source<'_>, file: &SourceFile<'_>) -> Result<RecordBatch, Failure> {
    let table =
        crate::tables::foreign::read(file.path, || false).map_err(|error| unread(source, error))?;
    // The reader opens the file itself, so what it read is checked afterwards.
    let digest = Digest::of_file(file.path).map_err(|error| unread(source, error))?;
    same(digest, file, source)?;
    Ok(table)
}

fn unread(source: &Source<'_>, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("cannot read {}: {error}", source.file))
        .help("check that `source` names an intact Parquet file, and its columns")
        .at("source")
}

/// The cells of a table, as text.
pub fn parquet(
    source: &Source<'_>,
    table: &RecordBatch,
    columns: &[&str],
) -> Result<Cells, Failure> {
    let mut texts = Vec::new();
    for column in columns {
        let names: Vec<String> = table
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let found = table.column_by_name(column);
        let found = found.ok_or_else(|| {
            no_column(
                source.file,
                column,
                &names.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        })?;
        let wrong = || {
            let what = format!("the column `{column}` is neither a string nor a number");
            unread(source, what)
        };
        if found.data_type().is_nested() {
            return Err(wrong());
        }
        let text = cast(found, &DataType::Utf8).map_err(|_| wrong())?;
        // Bytes that are not UTF-8 become null in the cast.
        if let Some(n) = (0..text.len()).find(|n| text.is_null(*n) && !found.is_null(*n)) {
            return Err(at(source.file, n, &format!("`{column}` is not UTF-8")));
        }
        if let Some(n) = (0..text.len()).find(|n| text.is_null(*n)) {
            return Err(at(source.file, n, &format!("`{column}` is null")));
        }
        if found.data_type().is_floating()
            && let Some(n) = (0..text.len()).find(|n| text.as_string::<i32>().value(*n) == "NaN")
        {
            return Err(at(source.file, n, &format!("`{column}` is NaN")));
        }
        texts.push(text);
    }
    let row = |n: usize| {
        texts
            .iter()
            .map(|text| text.as_string::<i32>().value(n).to_owned())
            .collect()
    };
    Ok((0..table.num_rows()).map(row).collect())
}
