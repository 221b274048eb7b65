//! The first rows of a user's file as text, to guess from. The stage `dataset` reads the file for itself, and is
//! stricter.

use std::fs::File;
use std::io::{BufRead, BufReader};
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
    /// Whether these are all rows of the file.
    pub whole: bool,
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
    match format {
        Format::Csv => separated(file, b',', true),
        Format::Tsv => separated(file, b'\t', false),
        Format::Jsonl => objects(file),
        Format::Parquet => parquet(file),
    }
}

fn separated(file: &Path, separator: u8, quoting: bool) -> Result<Sample, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .quoting(quoting)
        .flexible(true)
        .from_path(file)
        .map_err(|error| error.to_string())?;
    let header = reader.byte_headers().map_err(|error| error.to_string())?;
    let names: Vec<String> = header.iter().map(text).collect();
    // A byte order mark belongs to the file, not to the first name.
    let names: Vec<String> = names
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').to_owned())
        .collect();
    let mut sample = Sample {
        whole: true,
        ..Sample::default()
    };
    for record in reader.byte_records() {
        let record = record.map_err(|error| error.to_string())?;
        if sample.rows.len() == ROWS {
            sample.whole = false;
            break;
        }
        let mut row: Vec<String> = record.iter().map(text).collect();
        row.resize(names.len(), String::new());
        sample.rows.push(row);
    }
    sample.names = names;
    Ok(sample)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn objects(file: &Path) -> Result<Sample, String> {
    let reader = BufReader::new(File::open(file).map_err(|error| error.to_string())?);
    let mut sample = Sample {
        whole: true,
        ..Sample::default()
    };
    for (n, line) in reader.lines().enumerate() {
        let line = line.map_err(|error| format!("line {}: {error}", n + 1))?;
        if line.trim().is_empty() {
            continue;
        }
        if sample.rows.len() == ROWS {
            sample.whole = false;
            break;
        }
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).map_err(|error| format!("line {}: {error}", n + 1))?;
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
        whole: kept.num_rows() == table.num_rows(),
        names: Vec::new(),
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
