//! The table `results` of an evaluation: a row for each number of a paper's tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("results", "evaluate", "A row for each number of the paper's tables and figures, and each seed.", {
    PAPER = "paper": "string", "The parameter `paper`.";
    TABLE = "table": "string", "Which table or figure of the paper.";
    ROW = "row": "string", "Which row of it.";
    COL = "col": "string", "Which column of it.";
    SEED = "seed": "int64", "The value of the input's column `seed`, if it has one.";
    VALUE = "value": "float64", "The number; null if there was nothing to measure.";
    N = "n": "int64", "How many rows it was measured on; of a number that a table already has, that table's column `n` (`COUNT(*) AS n` in SQL), unless `{n}` is in a name of the cell; null if it has none.";
    PAPER_VALUE = "paper_value": "float64", "The number that the paper prints, if the input `paper` has it: a table with `table`, `row`, `col` and `value` (a float).";
    PROFILE = "profile": "string", "The parameter `profile`.";
});

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// Which table or figure.
    pub table: String,
    /// Which row of it.
    pub row: String,
    /// Which column of it.
    pub col: String,
    /// The seed, if it is an axis.
    pub seed: Option<i64>,
    /// The number.
    pub value: Option<f64>,
    /// How many rows it was measured on.
    pub n: Option<u64>,
}

/// The numbers that a paper prints, by table, row and column.
pub type PaperValues = BTreeMap<[String; 3], f64>;

/// The numbers as a table, beside those of the paper.
pub fn write(
    paper: &str,
    profile: &str,
    results: &[ResultRow],
    printed: &PaperValues,
) -> RecordBatch {
    let same = |text: &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(results.iter().map(|_| text)))
    };
    let text = |get: fn(&ResultRow) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(results.iter().map(get)))
    };
    let values = results.iter().map(|r| {
        let key = [r.table.clone(), r.row.clone(), r.col.clone()];
        printed.get(&key).copied()
    });
    let seeds = results.iter().map(|r| r.seed);
    let counts = results.iter().map(|r| r.n.map(|n| n as i64));
    let ours = results.iter().map(|r| r.value);
    let columns: Vec<(&str, ArrayRef)> = vec![
        (PAPER, same(paper)),
        (TABLE, text(|r| &r.table)),
        (ROW, text(|r| &r.row)),
        (COL, text(|r| &r.col)),
        (SEED, Arc::new(Int64Array::from_iter(seeds))),
        (VALUE, Arc::new(Float64Array::from_iter(ours))),
        (N, Arc::new(Int64Array::from_iter(counts))),
        (PAPER_VALUE, Arc::new(Float64Array::from_iter(values))),
        (PROFILE, same(profile)),
    ];
    with_metadata(columns, Metadata::default())
}
