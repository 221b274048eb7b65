//! One table of tidy results as a paper prints it: rows by columns, ours with its interval, the paper's beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::record_batch::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use serde_json::json;
use stages::tables::results::{COL, PAPER_VALUE, ROW, TABLE, VALUE};

use super::exit::Exit;
use super::print::out;
use crate::diagnostic::{Diagnostic, nearest};
use crate::inspect::summaries::NamedSummary;
use crate::results::columns;
use crate::results::statistics::mean;

/// What one cell holds.
#[derive(Default)]
struct Cell {
    values: Vec<f64>,
    paper: Option<f64>,
}

/// Rows and columns in the order of the results, and what is where.
struct Layout {
    rows: Vec<String>,
    cols: Vec<String>,
    cells: BTreeMap<(usize, usize), Cell>,
}

/// Prints the table of that name.
pub fn print(
    table: &RecordBatch,
    summaries: &[NamedSummary],
    name: &str,
    as_json: bool,
) -> Result<(), Exit> {
    let layout = layout(table, name)?;
    let summary = |r: usize, c: usize| {
        let names = [name, &layout.rows[r], &layout.cols[c]];
        summaries
            .iter()
            .find(|one| one.names.iter().map(String::as_str).eq(names))
    };
    if as_json {
        let cells = layout.cells.iter().map(|((r, c), cell)| {
            json!({
                "row": layout.rows[*r], "col": layout.cols[*c], "mean": mean(&cell.values),
                "paper": cell.paper, "summary": summary(*r, *c).map(|one| json!(one.summary)),
            })
        });
        out!(
            "{}",
            json!({ "table": name, "cells": cells.collect::<Vec<_>>() })
        );
        return Ok(());
    }
    let text = |r: usize, c: usize| {
        let Some(cell) = layout.cells.get(&(r, c)) else {
            return String::new();
        };
        let ours = mean(&cell.values).map_or("none".to_owned(), decimals);
        let interval = summary(r, c).and_then(|one| one.summary.interval);
        let interval = interval.map(|at| format!(" [{}, {}]", decimals(at.low), decimals(at.high)));
        let paper = cell.paper.map(|paper| format!(" ({})", decimals(paper)));
        [Some(ours), interval, paper]
            .into_iter()
            .flatten()
            .collect()
    };
    let rows = 0..layout.rows.len();
    let column = |c: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            rows.clone().map(|r| text(r, c)),
        ))
    };
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(&layout.rows));
    let columns = layout
        .cols
        .iter()
        .enumerate()
        .map(|(c, name)| (name.as_str(), column(c)));
    let all = std::iter::once(("", names)).chain(columns);
    let printed = RecordBatch::try_from_iter(all).expect("columns of one length");
    out!("{name}{}", about(summaries, name, &layout));
    // Whole, whatever the terminal's width: an interval that is cut off says something else.
    let text = pretty_format_batches(&[printed]);
    out!(
        "{}",
        text.map_or_else(|error| error.to_string(), |text| text.to_string())
    );
    Ok(())
}

/// What brackets and parentheses mean, if there are any.
fn about(summaries: &[NamedSummary], name: &str, layout: &Layout) -> String {
    let own = summaries.iter().filter(|one| one.names[0] == name);
    let mut methods: Vec<&str> = own
        .filter_map(|one| Some(one.summary.interval?.method.name()))
        .collect();
    methods.sort_unstable();
    methods.dedup();
    let intervals =
        (!methods.is_empty()).then(|| format!("[95% interval by {}]", methods.join(" or ")));
    let paper = layout.cells.values().any(|cell| cell.paper.is_some());
    let paper = paper.then(|| "(the paper's number)".to_owned());
    let parts: Vec<String> = intervals.into_iter().chain(paper).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(": mean {}", parts.join(" ")),
    }
}

fn layout(table: &RecordBatch, name: &str) -> Result<Layout, Diagnostic> {
    let texts = [TABLE, ROW, COL].map(|column| columns::texts(table, column));
    let ([Some(tables), Some(rows), Some(cols)], Some(values)) =
        (texts, columns::numbers(table, VALUE))
    else {
        return Err(Diagnostic::new(
            "--table is for the results of an evaluate stage",
        ));
    };
    let printed = columns::numbers(table, PAPER_VALUE);
    let mut layout = Layout {
        rows: Vec::new(),
        cols: Vec::new(),
        cells: BTreeMap::new(),
    };
    for line in (0..table.num_rows()).filter(|line| tables[*line] == name) {
        let at = (
            place(&mut layout.rows, &rows[line]),
            place(&mut layout.cols, &cols[line]),
        );
        let cell = layout.cells.entry(at).or_default();
        cell.values.extend(values[line]);
        cell.paper = cell
            .paper
            .or(printed.as_ref().and_then(|printed| printed[line]));
    }
    if layout.cells.is_empty() {
        let mut known: Vec<&str> = tables.iter().map(String::as_str).collect();
        known.dedup();
        return Err(
            Diagnostic::new(format!("the results have no table `{name}`"))
                .maybe_help(nearest(name, known.iter().copied()))
                .help(format!("tables: {}", known.join(", "))),
        );
    }
    Ok(layout)
}

/// Three decimals, as papers print shares; whole numbers as they are.
fn decimals(number: f64) -> String {
    match number.fract() == 0.0 {
        true => number.to_string(),
        false => format!("{number:.3}"),
    }
}

fn place(names: &mut Vec<String>, name: &str) -> usize {
    let known = names.iter().position(|known| known == name);
    known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}
