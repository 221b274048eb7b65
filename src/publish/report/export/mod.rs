//! Results for other tools: tables as CSV, Parquet, Markdown and LaTeX, examples in TextAttack's
//! layout, runs in MLflow's.

mod grid;
pub mod mlflow;
mod names;
pub mod textattack;

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use arrow::record_batch::RecordBatch;
use stages::tables::results;

use super::tables::{Cell, PaperTable};
use super::view::number_as;
use crate::results::columns;
pub use grid::{Grid, in_latex};

/// A table as CSV; lists and the like are written as text.
pub fn csv(table: &RecordBatch) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| field.name().as_bytes());
    let columns: Vec<Vec<String>> = table.columns().iter().map(columns::words).collect();
    writer.write_record(names).expect("memory takes it");
    for row in 0..table.num_rows() {
        let values = columns.iter().map(|column| column[row].as_bytes());
        writer.write_record(values).expect("memory takes it");
    }
    writer.into_inner().expect("memory takes it")
}

/// Tidy results with what is known of each number beside it: the mean and sd over executions, how many there are, and
/// the 95% interval with its method. Any other table stays as it is.
pub fn with_intervals(table: RecordBatch, papers: &[PaperTable]) -> RecordBatch {
    let names = [results::TABLE, results::ROW, results::COL];
    let names = names.map(|name| columns::texts(&table, name));
    let [Some(tables), Some(rows), Some(cols)] = names else {
        return table;
    };
    let paper = columns::texts(&table, results::PAPER);
    let cell = |line: usize| -> Option<&Cell> {
        let own = paper.as_ref().map_or("", |paper| paper[line].as_str());
        let of = |one: &&PaperTable| one.name == tables[line] && one.paper == own;
        let grid = papers.iter().find(of)?;
        let place = |names: &[String], name: &String| names.iter().position(|one| one == name);
        let spot = (
            place(&grid.rows, &rows[line])?,
            place(&grid.cols, &cols[line])?,
        );
        grid.cells.get(&spot)
    };
    let floats = |get: fn(&Cell) -> Option<f64>| -> ArrayRef {
        let each = (0..table.num_rows()).map(|line| cell(line).and_then(get));
        Arc::new(Float64Array::from_iter(each))
    };
    let texts = |get: fn(&Cell) -> Option<String>| -> ArrayRef {
        let each = (0..table.num_rows()).map(|line| cell(line).and_then(get));
        Arc::new(StringArray::from_iter(each))
    };
    let more: [(&str, ArrayRef); 6] = [
        ("mean", floats(|cell| cell.mean)),
        ("sd", floats(|cell| cell.sd)),
        (
            "executions",
            texts(|cell| Some(cell.executions.to_string())),
        ),
        ("low", floats(|cell| cell.interval.map(|at| at.low))),
        ("high", floats(|cell| cell.interval.map(|at| at.high))),
        (
            "interval",
            texts(|cell| cell.interval.map(|at| at.method.name().to_owned())),
        ),
    ];
    let fields = table.schema();
    let fields = fields.fields().iter().map(|field| field.name().to_owned());
    let known = fields.zip(table.columns().iter().cloned());
    let more = more.map(|(name, column)| (name.to_owned(), column));
    RecordBatch::try_from_iter(known.chain(more)).unwrap_or(table)
}

/// A table as rows of words.
pub fn plain(name: &str, table: &RecordBatch) -> Grid {
    let schema = table.schema();
    let fields = schema.fields();
    let shown: Vec<Vec<String>> = fields
        .iter()
        .zip(table.columns())
        .map(|(field, column)| match field.data_type().is_floating() {
            true => {
                let numbers = columns::numbers(table, field.name()).unwrap_or_default();
                let short = |number: Option<f64>| number.map(columns::short).unwrap_or_default();
                numbers.into_iter().map(short).collect()
            }
            false => columns::words(column),
        })
        .collect();
    Grid {
        title: name.to_owned(),
        head: fields.iter().map(|field| field.name().clone()).collect(),
        numbers: fields
            .iter()
            .map(|field| field.data_type().is_numeric())
            .collect(),
        rows: (0..table.num_rows())
            .map(|row| shown.iter().map(|column| column[row].clone()).collect())
            .collect(),
        bold: Vec::new(),
    }
}

/// A table of a paper: ours with its interval, and the paper's number in brackets.
pub fn printed(table: &PaperTable) -> Grid {
    let whole = table.is_whole();
    let cell = |r: usize, c: usize| {
        let Some(cell) = table.cells.get(&(r, c)) else {
            return String::new();
        };
        let ours = cell
            .mean
            .map_or("–".to_owned(), |mean| number_as(mean, whole));
        let interval = cell.between(|number| number_as(number, whole));
        let interval = interval.map(|interval| format!(" {interval}"));
        let paper = cell
            .paper
            .map(|paper| format!(" ({})", number_as(paper, whole)));
        [Some(ours), interval, paper]
            .into_iter()
            .flatten()
            .collect()
    };
    let columns = 0..table.cols.len();
    let row = |(r, name): (usize, &String)| {
        let cells = columns.clone().map(|c| cell(r, c));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let apart = table.has_paper() && !table.is_comparable();
    let apart = apart.then(|| format!("profile {}: not the paper's data", table.profile));
    let paper = (!table.paper.is_empty()).then(|| table.paper.clone());
    let about = paper.into_iter().chain(apart).chain(table.methods());
    let about: Vec<String> = about.collect();
    Grid {
        title: match about.is_empty() {
            true => table.name.clone(),
            false => format!("{} ({})", table.name, about.join(", ")),
        },
        head: std::iter::once(String::new())
            .chain(table.cols.iter().cloned())
            .collect(),
        numbers: std::iter::once(false)
            .chain(columns.clone().map(|_| true))
            .collect(),
        rows: table.rows.iter().enumerate().map(row).collect(),
        bold: Vec::new(),
    }
}
