//! Figures, drawn from result tables: those that `figures.toml` asks for, and those that the
//! known table layouts suggest.
//!
//! [`spec`] reads the file, [`make`] turns a table into a figure, [`paper`] and [`automatic`]
//! need no file.

pub mod automatic;
mod bands;
pub mod draw;
mod images;
mod lists;
mod make;
mod missing;
pub mod paper;
pub mod spec;
#[cfg(test)]
mod tests;

use arrow::record_batch::RecordBatch;
use serde::Serialize;

use crate::results::columns;

pub use images::{Picture, change, picture};
pub use make::make;

/// A figure, ready for a page.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// What it shows, in a line.
    pub title: String,
    /// What else a reader should know.
    pub note: String,
    /// Drawings, one below the other; safe to embed.
    pub drawings: Vec<String>,
    /// Rows of pictures side by side, each with its name.
    pub pictures: Vec<Vec<Picture>>,
    /// Names of the series with their colours.
    pub legend: Vec<(String, String)>,
    /// Whether strokes for the paper's numbers are in it.
    pub paper: bool,
    /// The result that it is drawn from, as `ablate show` takes it.
    pub source: String,
    /// The step that made that result, if this run has it.
    pub step: Option<usize>,
    /// The numbers themselves.
    pub data: Data,
}

/// The first rows of the table behind a figure.
#[derive(Debug, Default, Serialize)]
pub struct Data {
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Its first rows, in words.
    pub rows: Vec<Vec<String>>,
    /// How many rows it has.
    pub total: usize,
}

/// How many rows of data are shown below a figure. The rest is in the store.
const ROWS: usize = 60;
/// The longest value that is shown whole.
const LONGEST: usize = 80;

impl Data {
    /// The first rows of a table.
    pub fn of(table: &RecordBatch) -> Data {
        let head = table.slice(0, table.num_rows().min(ROWS));
        let shown: Vec<Vec<String>> = head.columns().iter().map(columns::words).collect();
        let row = |at: usize| shown.iter().map(|column| cut(&column[at])).collect();
        let schema = table.schema();
        Data {
            columns: schema.fields().iter().map(|f| f.name().clone()).collect(),
            rows: (0..head.num_rows()).map(row).collect(),
            total: table.num_rows(),
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Names of series with their colours. One series needs no legend.
pub fn legend<T>(series: &[draw::Series<T>]) -> Vec<(String, String)> {
    match series.len() {
        0 | 1 => Vec::new(),
        _ => {
            let named = series.iter().enumerate();
            named
                .map(|(s, one)| (one.name.clone(), draw::colour(s)))
                .collect()
        }
    }
}
