//! A user's own data: a CSV, TSV, JSON-lines or Parquet file beside the pipeline, hashed by
//! content like every declared file. `source` says which column is what.

mod cells;
mod numbers;
mod parquet;
mod source;

use std::collections::BTreeMap;
use std::fs;

use arrow::record_batch::RecordBatch;
use store::Digest;

use super::table::{Sequences, Texts};
use super::text::{Encoding, decode};
use crate::{Failure, SourceFile};
use cells::{at, delimited, jsonl};
use numbers::Signals;
use source::{Format, same};

pub use source::{FORM, Source, parse};

/// The rows in the order of the file, and the names of the classes. Labels are numbered in the
/// order of their values: numbers by size, words by alphabet. Without a split column every row
/// is in `train`; without an id column the id is the number of the row, from 0.
pub fn load(
    source: &Source<'_>,
    file: &SourceFile<'_>,
    encoding: Encoding,
) -> Result<(RecordBatch, Vec<String>), Failure> {
    let columns: Vec<&str> = [
        source.text,
        source.text_b,
        source.label,
        source.id,
        source.split,
    ]
    .into_iter()
    .flatten()
    .collect();
    let signals: Option<Signals>;
    let cells = match source.format {
        Format::Parquet => {
            let table = parquet::open(source, file)?;
            let numbers = |x| numbers::column(source.file, &table, x, source.channels);
            signals = source.x.map(numbers).transpose()?;
            parquet::parquet(source, &table, &columns)?
        }
        format => {
            let bytes = fs::read(file.path)
                .map_err(|error| Failure::new(format!("cannot read {}: {error}", source.file)))?;
            same(Digest::of(&bytes), file, source)?;
            let text = decode(bytes, encoding, source.file)?;
            let numbers = |x| numbers::jsonl(source.file, &text, x, source.channels);
            signals = source.x.map(numbers).transpose()?;
            match format {
                Format::Csv => delimited(source.file, &text, b',', &columns)?,
                Format::Tsv => delimited(source.file, &text, b'\t', &columns)?,
                _ => jsonl(source.file, &text, &columns)?,
            }
        }
    };
    if cells.is_empty() {
        return Err(Failure::new(format!("{} has no rows", source.file))
            .help("a data set needs at least one row")
            .at("source"));
    }
    let place = |name: Option<&str>| {
        name.and_then(|name| columns.iter().position(|column| *column == name))
    };
    let labels = place(source.label).map(|column| {
        let labels = cells.iter().map(|row| row[column].trim());
        classes(source.file, labels)
    });
    let names: Vec<String> = labels
        .transpose()?
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
    let mut sequences = signals.as_ref().map(|s| Sequences::of(&s.rows, s.channels));
    let mut ids = std::collections::HashSet::new();
    for (n, row) in cells.iter().enumerate() {
        let cell = |name: Option<&str>| place(name).map(|column| row[column].as_str());
        let id = cell(source.id).map_or_else(|| n.to_string(), str::to_owned);
        if !ids.insert(id.clone()) {
            return Err(at(source.file, n, &format!("duplicate id `{id}`")));
        }
        let label = cell(source.label).map(str::trim);
        if label == Some("") {
            return Err(at(source.file, n, "the label is empty"));
        }
        let label = label.map(|label| number[label]);
        let split = cell(source.split).unwrap_or("train");
        if let (Some(sequences), Some(signals)) = (&mut sequences, &signals) {
            sequences.push(&id, split, label, &signals.rows[n]);
            continue;
        }
        let text = cell(source.text).unwrap_or_default();
        match cell(source.text_b) {
            Some(second) => rows.push_pair(&id, split, label, [text, second]),
            None => rows.push(&id, split, label, text),
        }
    }
    let table = match sequences {
        Some(sequences) => sequences.finish(),
        None => rows.finish(),
    };
    Ok((table, names))
}

/// The classes in order: as numbers if all of them are, else as words.
fn classes<'a>(file: &str, labels: impl Iterator<Item = &'a str>) -> Result<Vec<&'a str>, Failure> {
    let distinct: std::collections::BTreeSet<&str> = labels.collect();
    let mut classes: Vec<&str> = distinct.into_iter().collect();
    let numbers: Option<Vec<f64>> = classes
        .iter()
        .map(|label| label.parse().ok().filter(|x: &f64| x.is_finite()))
        .collect();
    if numbers.is_some() {
        let number = |text: &str| text.parse::<f64>().unwrap_or_default();
        classes.sort_by(|a, b| number(a).total_cmp(&number(b)).then(a.cmp(b)));
        let twice = classes
            .windows(2)
            .find(|pair| number(pair[0]) == number(pair[1]));
        if let Some(pair) = twice {
            return Err(Failure::new(format!(
                "{file}: the labels `{}` and `{}` are the same number",
                pair[0], pair[1]
            ))
            .help("write each class in one way, or they count as two")
            .at("source"));
        }
    }
    Ok(classes)
}
