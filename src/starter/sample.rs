//! The first rows of a user's file as text, to guess from. The stage `dataset` reads the file for itself, and is
//! stricter: `whole` asks it.

use std::path::Path;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;

/// Rows that are looked at.
const ROWS: usize = 5_000;

/// How a file is written, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
}

impl Format {
    const ENDINGS: [(&str, Format); 7] = [
        ("csv", Format::Csv),
        ("tsv", Format::Tsv),
        ("tab", Format::Tsv),
        ("jsonl", Format::Jsonl),
        ("ndjson", Format::Jsonl),
        ("parquet", Format::Parquet),
        ("pq", Format::Parquet),
    ];

    /// What the ending of a name says.
    pub fn of(file: &Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        let found = Format::ENDINGS.iter().find(|(known, _)| *known == ending);
        found.map(|(_, format)| *format)
    }

    /// Its key in `source` of a dataset stage.
    pub fn key(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

/// The first rows of a file: a cell that is missing is empty.
#[derive(Debug, Default)]
pub struct Sample {
    /// The names of the columns, in order.
    pub names: Vec<String>,
    /// Row by row, as many cells as names.
    pub rows: Vec<Vec<String>>,
    /// The encoding of the text, as a dataset stage names it; none if it is UTF-8.
    pub encoding: Option<&'static str>,
}

impl Sample {
    /// The cells of a column.
    pub fn column(&self, at: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[at].as_str())
    }

    /// Where a column is.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

/// The first rows of a file.
pub fn read(file: &Path, format: Format) -> Result<Sample, String> {
    if format == Format::Parquet {
        return parquet(file);
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let (text, encoding) = decoded(bytes)?;
    let sample = match format {
        Format::Tsv => separated(&text, b'\t', false),
        Format::Jsonl => objects(&text),
        Format::Csv | Format::Parquet => separated(&text, b',', true),
    };
    sample.map(|sample| Sample { encoding, ..sample })
}

/// Text, and the encoding that it must be in if it is not in UTF-8: what programs in the west wrote before.
fn decoded(bytes: Vec<u8>) -> Result<(String, Option<&'static str>), String> {
    let marked = matches!(bytes[..], [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    if marked || bytes.contains(&0) {
        return Err("it looks like UTF-16: save it as UTF-8".to_owned());
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok((text, None)),
        Err(error) => error.into_bytes(),
    };
    // Where Latin-1 has control characters, Windows has punctuation.
    let windows = bytes.iter().any(|byte| (0x80..0xA0).contains(byte));
    let encoding = match windows {
        true => "windows-1252",
        false => "latin-1",
    };
    Ok((bytes.into_iter().map(char::from).collect(), Some(encoding)))
}

fn separated(text: &str, separator: u8, quoting: bool) -> Result<Sample, String> {
    // A byte order mark belongs to the file, not to the first name.
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .quoting(quoting)
        .flexible(true)
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?;
    let mut sample = Sample {
        names: header.iter().map(str::to_owned).collect(),
        ..Sample::default()
    };
    for record in reader.records().take(ROWS) {
        let record = record.map_err(|error| error.to_string())?;
        let mut row: Vec<String> = record.iter().map(str::to_owned).collect();
        row.resize(sample.names.len(), String::new());
        sample.rows.push(row);
    }
    Ok(sample)
}

fn objects(text: &str) -> Result<Sample, String> {
    let mut sample = Sample::default();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    for (n, line) in lines.take(ROWS) {
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", n + 1))?;
        for name in object.keys() {
            if sample.find(name).is_none() {
                sample.names.push(name.clone());
            }
        }
        let cell = |name: &String| match object.get(name) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        sample.rows.push(sample.names.iter().map(cell).collect());
    }
    let width = sample.names.len();
    sample
        .rows
        .iter_mut()
        .for_each(|row| row.resize(width, String::new()));
    Ok(sample)
}

fn parquet(file: &Path) -> Result<Sample, String> {
    let table = stages::tables::foreign::read(file, || false).map_err(|error| error.message)?;
    let kept = table.slice(0, table.num_rows().min(ROWS));
    let mut sample = Sample {
        rows: vec![Vec::new(); kept.num_rows()],
        ..Sample::default()
    };
    for (field, column) in kept.schema().fields().iter().zip(kept.columns()) {
        // Lists and structs are neither texts nor labels.
        let Ok(column) = cast(column, &DataType::Utf8) else {
            continue;
        };
        sample.names.push(field.name().clone());
        let cells = column.as_string::<i32>();
        for (row, cell) in sample.rows.iter_mut().zip(cells) {
            row.push(cell.unwrap_or_default().to_owned());
        }
    }
    Ok(sample)
}
