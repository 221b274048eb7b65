//! Cells out of files of text: CSV, TSV and JSON lines. What is wrong says in which row.
//! Knows nothing of what the columns mean.

use crate::Failure;
use crate::dataset::text::lines;

/// Each row's wanted cells as text.
pub type Cells = Vec<Vec<String>>;

/// The cells of a file with a header, whose columns are separated by commas or tabs.
pub fn delimited(
    file: &str,
    text: &str,
    delimiter: u8,
    columns: &[&str],
) -> Result<Cells, Failure> {
    let mut reader = csv::ReaderBuilder::new();
    // In tab-separated files a quotation mark is a quotation mark.
    reader.delimiter(delimiter).quoting(delimiter == b',');
    let mut reader = reader.from_reader(text.as_bytes());
    let broken = |n: usize, error: csv::Error| at(file, n, &error.to_string());
    let header = reader.headers().map_err(|error| broken(0, error))?.clone();
    let places = columns.iter().map(|column| {
        let place = header.iter().position(|name| name == *column);
        place.ok_or_else(|| no_column(file, column, &header.iter().collect::<Vec<_>>()))
    });
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    for (n, record) in reader.records().enumerate() {
        let record = record.map_err(|error| broken(n, error))?;
        cells.push(
            places
                .iter()
                .map(|place| record[*place].to_owned())
                .collect(),
        );
    }
    Ok(cells)
}

/// The cells of a file with a JSON object a line.
pub fn jsonl(file: &str, text: &str, columns: &[&str]) -> Result<Cells, Failure> {
    let mut cells = Vec::new();
    for (n, line) in lines(text)
        .filter(|line| !line.trim().is_empty())
        .enumerate()
    {
        let row: serde_json::Value =
            serde_json::from_str(line).map_err(|error| at(file, n, &error.to_string()))?;
        let cell = |column: &&str| match row.get(*column) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                Ok(value.to_string())
            }
            Some(_) => Err(at(file, n, &format!("`{column}` is no text and no number"))),
            None => Err(at(file, n, &format!("there is no `{column}`"))),
        };
        cells.push(columns.iter().map(cell).collect::<Result<_, _>>()?);
    }
    Ok(cells)
}

/// A column that is not there.
pub fn no_column(file: &str, column: &str, known: &[&str]) -> Failure {
    Failure::new(format!("{} has no column `{column}`", file))
        .help(format!("its columns: {}", known.join(", ")))
        .at("source")
}

/// What is wrong with a row, counted from 0 here and from 1 by people.
pub fn at(file: &str, row: usize, what: &str) -> Failure {
    Failure::new(format!("{}, row {}: {what}", file, row + 1)).at("source")
}
