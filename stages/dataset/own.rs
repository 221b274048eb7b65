//! A user's own data: a CSV, TSV, JSON-lines or Parquet file beside the pipeline, hashed by
//! content like every declared file. Which columns mean what is said in `source`.

use std::collections::BTreeMap;
use std::fs;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use store::{Digest, Value};

use super::table::Texts;
use super::text::{Encoding, decode, lines};
use crate::{Failure, SourceFile};

/// What `source` says.
#[derive(Debug, PartialEq)]
pub struct Source<'a> {
    /// The file, as declared.
    pub file: &'a str,
    format: Format,
    text: &'a str,
    text_b: Option<&'a str>,
    label: Option<&'a str>,
    id: Option<&'a str>,
    split: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
}

const FORMATS: [(&str, Format); 4] = [
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("jsonl", Format::Jsonl),
    ("parquet", Format::Parquet),
];
const COLUMNS: [&str; 5] = ["text", "text_b", "label", "id", "split"];

/// The form, for messages.
pub const FORM: &str = "source = { csv = \"file.csv\", text = \"review\", label = \"stars\" }, or tsv, jsonl, parquet; also text_b, id, split";

/// Checks a `source` table.
pub fn parse(table: &BTreeMap<String, Value>) -> Result<Source<'_>, String> {
    let mut files = Vec::new();
    for (key, value) in table {
        let Some(name) = value.as_text() else {
            return Err(format!("`{key}` of `source` must be a string, not {value}"));
        };
        if let Some((_, format)) = FORMATS.iter().find(|(known, _)| known == key) {
            files.push((name, *format));
        } else if !COLUMNS.contains(&key.as_str()) {
            return Err(format!("`source` has no `{key}`"));
        }
    }
    let [(file, format)] = files[..] else {
        return Err(format!("`source` must name one file, not {}", files.len()));
    };
    let column = |name: &str| table.get(name).and_then(Value::as_text);
    Ok(Source {
        file,
        format,
        text: column("text").ok_or("`source` does not say which column is the text")?,
        text_b: column("text_b"),
        label: column("label"),
        id: column("id"),
        split: column("split"),
    })
}

/// The rows in the order of the file, and the names of the classes. Labels are numbered in the
/// order of their values: numbers by size, words by alphabet. Without a split column every row
/// is in `train`; without an id column the id is the number of the row, from 0.
pub fn load(
    source: &Source<'_>,
    file: &SourceFile<'_>,
    encoding: Encoding,
) -> Result<(RecordBatch, Vec<String>), Failure> {
    let columns: Vec<&str> = [
        Some(source.text),
        source.text_b,
        source.label,
        source.id,
        source.split,
    ]
    .into_iter()
    .flatten()
    .collect();
    let cells = match source.format {
        Format::Parquet => parquet(source, file, &columns)?,
        format => {
            let bytes = fs::read(file.path)
                .map_err(|error| Failure::new(format!("cannot read {}: {error}", source.file)))?;
            same(Digest::of(&bytes), file, source)?;
            let text = decode(bytes, encoding, source.file)?;
            match format {
                Format::Csv => delimited(source, &text, b',', &columns)?,
                Format::Tsv => delimited(source, &text, b'\t', &columns)?,
                _ => jsonl(source, &text, &columns)?,
            }
        }
    };
    let place = |name: Option<&str>| {
        name.and_then(|name| columns.iter().position(|column| *column == name))
    };
    let labels =
        place(source.label).map(|column| classes(cells.iter().map(|row| row[column].as_str())));
    let names: Vec<String> = labels
        .iter()
        .flatten()
        .map(|name| (*name).to_owned())
        .collect();
    let number: BTreeMap<&str, i64> = names.iter().map(String::as_str).zip(0..).collect();
    let mut rows = if source.text_b.is_some() {
        Texts::pairs()
    } else {
        Texts::default()
    };
    let mut ids = std::collections::HashSet::new();
    for (n, row) in cells.iter().enumerate() {
        let cell = |name: Option<&str>| place(name).map(|column| row[column].as_str());
        let id = cell(source.id).map_or_else(|| n.to_string(), str::to_owned);
        if !ids.insert(id.clone()) {
            return Err(at(source, n, &format!("the id `{id}` is there twice")));
        }
        if cell(source.label) == Some("") {
            return Err(at(source, n, "it has no label"));
        }
        let label = cell(source.label).map(|label| number[label]);
        let split = cell(source.split).unwrap_or("train");
        let text = cell(Some(source.text)).unwrap_or_default();
        match cell(source.text_b) {
            Some(second) => rows.push_pair(&id, split, label, [text, second]),
            None => rows.push(&id, split, label, text),
        }
    }
    Ok((rows.finish(), names))
}

/// Each row's wanted cells as text.
type Cells = Vec<Vec<String>>;

fn delimited(
    source: &Source<'_>,
    text: &str,
    delimiter: u8,
    columns: &[&str],
) -> Result<Cells, Failure> {
    let mut reader = csv::ReaderBuilder::new();
    // In tab-separated files a quotation mark is a quotation mark.
    reader.delimiter(delimiter).quoting(delimiter == b',');
    let mut reader = reader.from_reader(text.as_bytes());
    let broken = |n: usize, error: csv::Error| at(source, n, &error.to_string());
    let header = reader.headers().map_err(|error| broken(0, error))?.clone();
    let places = columns.iter().map(|column| {
        let place = header.iter().position(|name| name == *column);
        place.ok_or_else(|| no_column(source, column, &header.iter().collect::<Vec<_>>()))
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

fn jsonl(source: &Source<'_>, text: &str, columns: &[&str]) -> Result<Cells, Failure> {
    let mut cells = Vec::new();
    for (n, line) in lines(text)
        .filter(|line| !line.trim().is_empty())
        .enumerate()
    {
        let row: serde_json::Value =
            serde_json::from_str(line).map_err(|error| at(source, n, &error.to_string()))?;
        let cell = |column: &&str| match row.get(*column) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                Ok(value.to_string())
            }
            Some(_) => Err(at(
                source,
                n,
                &format!("`{column}` is no text and no number"),
            )),
            None => Err(at(source, n, &format!("there is no `{column}`"))),
        };
        cells.push(columns.iter().map(cell).collect::<Result<_, _>>()?);
    }
    Ok(cells)
}

fn parquet(source: &Source<'_>, file: &SourceFile<'_>, columns: &[&str]) -> Result<Cells, Failure> {
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
                source,
                column,
                &names.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        })?;
        let text = cast(found, &DataType::Utf8)
            .map_err(|_| unread(format!("the column `{column}` is no text and no number")))?;
        if let Some(n) = (0..text.len()).find(|n| text.is_null(*n)) {
            return Err(at(source, n, &format!("`{column}` is null")));
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

/// The classes in order: as numbers if all of them are, else as words.
fn classes<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let distinct: std::collections::BTreeSet<&str> = labels.collect();
    let mut classes: Vec<&str> = distinct.into_iter().collect();
    let numbers: Option<Vec<f64>> = classes
        .iter()
        .map(|label| label.parse().ok().filter(|x: &f64| x.is_finite()))
        .collect();
    if numbers.is_some() {
        classes.sort_by(|a, b| {
            let number = |text: &str| text.parse::<f64>().unwrap_or_default();
            number(a).total_cmp(&number(b)).then(a.cmp(b))
        });
    }
    classes
}

fn same(found: Digest, file: &SourceFile<'_>, source: &Source<'_>) -> Result<(), Failure> {
    match found == file.digest {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} changed while the pipeline was running",
            source.file
        ))
        .help("run again: the new contents get a key of their own")
        .at("source")),
    }
}

fn no_column(source: &Source<'_>, column: &str, known: &[&str]) -> Failure {
    Failure::new(format!("{} has no column `{column}`", source.file))
        .help(format!("its columns: {}", known.join(", ")))
        .at("source")
}

fn at(source: &Source<'_>, row: usize, what: &str) -> Failure {
    Failure::new(format!("{}, row {}: {what}", source.file, row + 1)).at("source")
}
