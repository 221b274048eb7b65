//! A user's own data: a CSV, TSV, JSON-lines or Parquet file beside the pipeline, hashed by
//! content like every declared file. Which columns mean what is said in `source`.

mod cells;
mod parquet;

use std::collections::BTreeMap;
use std::fs;

use arrow::record_batch::RecordBatch;
use store::{Digest, Value};

use super::table::Texts;
use super::text::{Encoding, decode};
use crate::{Failure, SourceFile};
use cells::{at, delimited, jsonl};

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
        Format::Parquet => parquet::parquet(source, file, &columns)?,
        format => {
            let bytes = fs::read(file.path)
                .map_err(|error| Failure::new(format!("cannot read {}: {error}", source.file)))?;
            same(Digest::of(&bytes), file, source)?;
            let text = decode(bytes, encoding, source.file)?;
            match format {
                Format::Csv => delimited(source.file, &text, b',', &columns)?,
                Format::Tsv => delimited(source.file, &text, b'\t', &columns)?,
                _ => jsonl(source.file, &text, &columns)?,
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
            return Err(at(source.file, n, &format!("the id `{id}` is there twice")));
        }
        if cell(source.label) == Some("") {
            return Err(at(source.file, n, "it has no label"));
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
