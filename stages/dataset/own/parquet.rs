//! Cells out of a Parquet file of any program.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use store::Digest;

use super::cells::{Cells, at, no_column};
use super::{Source, same};
use crate::{Failure, SourceFile};

/// The cells of a Parquet file, as text.
pub fn parquet(
    source: &Source<'_>,
    file: &SourceFile<'_>,
    columns: &[&str],
) -> Result<Cells, Failure> {
    let unread = |error: String| Failure::new(format!("cannot read {}: {error}", source.file));
    let table = store::read_foreign(file.path).map_err(|error| unread(error.to_string()))?;
    // The reader opens the file itself, so what it read is checked afterwards.
    let digest = Digest::of_file(file.path).map_err(|error| unread(error.to_string()))?;
    same(digest, file, source)?;
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
        let text = cast(found, &DataType::Utf8)
            .map_err(|_| unread(format!("the column `{column}` is no text and no number")))?;
        if let Some(n) = (0..text.len()).find(|n| text.is_null(*n)) {
            return Err(at(source.file, n, &format!("`{column}` is null")));
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
