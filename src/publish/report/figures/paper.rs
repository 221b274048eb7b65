//! The tables of a paper as figures.

use std::collections::BTreeSet;

use super::draw::{self, Axes, Series};
use super::{Data, Figure, legend};
use crate::publish::report::tables::{Cell, PaperTable};
use crate::results::columns;
use crate::results::recorded::{Recorded, attack_of};

/// A table of a paper as a figure: a matrix for confusion and the like, bars otherwise, if it has more than
/// one number and they share a scale.
pub fn of_table(table: &PaperTable, recorded: &Recorded) -> Option<Figure> {
    let step = &recorded.steps[table.step];
    let cell = |r: usize, c: usize| table.cells.get(&(r, c));
    let mean = |r: usize, c: usize| cell(r, c).and_then(|cell| cell.mean);
    let numbers = table.cells.values().filter_map(|cell| cell.mean);
    if numbers.clone().count() < 2 || table.cells.len() > 400 {
        return None;
    }
    let metric = table.metric.as_deref().unwrap_or_default();
    let mut figure = Figure {
        title: table.name.clone(),
        note: String::new(),
        drawings: Vec::new(),
        pictures: Vec::new(),
        legend: Vec::new(),
        paper: false,
        source: step.source(&step.outputs()[table.output]),
        step: Some(table.step),
        data: data(table),
    };
    let counted = |side: usize, other: &str| {
        let counted = table.counted[side].clone();
        counted.unwrap_or_else(|| other.to_owned())
    };
    if metric == "confusion" || is_square(table) {
        let names = match metric {
            "confusion" => ["class".to_owned(), "answer".to_owned()],
            _ => [counted(0, "row"), counted(1, "column")],
        };
        let axes = Axes {
            x: &names[1],
            y: &names[0],
        };
        figure
            .drawings
            .extend(draw::matrix(&axes, &table.rows, &table.cols, mean));
        return (!figure.drawings.is_empty()).then_some(figure);
    }
    let shares = numbers.clone().all(|number| (0.0..=1.0).contains(&number));
    if !shares && metric.is_empty() {
        return None;
    }
    let of = |pick: &dyn Fn(&Cell) -> Option<f64>, r: usize| -> Vec<Option<f64>> {
        (0..table.cols.len())
            .map(|c| cell(r, c).and_then(pick))
            .collect()
    };
    let series = table.rows.iter().enumerate().map(|(r, name)| Series {
        name: name.clone(),
        values: of(&|cell| cell.mean, r),
    });
    let series: Vec<Series<Vec<Option<f64>>>> = series.take(draw::COLOURS.len()).collect();
    let paper: Vec<Vec<Option<f64>>> = (0..series.len())
        .map(|r| of(&|cell| cell.paper, r))
        .collect();
    let ends = |r: usize, c: usize| {
        let interval = cell(r, c)?.interval?;
        Some((interval.low, interval.high))
    };
    let intervals: Vec<Vec<Option<(f64, f64)>>> = (0..series.len())
        .map(|r| (0..table.cols.len()).map(|c| ends(r, c)).collect())
        .collect();
    if series.len() < table.rows.len() {
        figure.note = format!(
            "The first {} of {} rows are drawn.",
            series.len(),
            table.rows.len()
        );
    }
    let up = if metric.is_empty() { "share" } else { metric };
    let along = match metric {
        "words" => "words changed".to_owned(),
        _ if of_attacks(table, recorded) => counted(1, "attack"),
        _ => counted(1, "column"),
    };
    figure.paper = table.has_paper();
    if figure.paper && !table.is_comparable() {
        let apart = format!(
            "The profile {} does not use the paper's data.",
            table.profile
        );
        figure.note = [figure.note.as_str(), &apart].join(" ").trim().to_owned();
    }
    if let Some(methods) = table.methods() {
        let bars = format!("Error bars are {methods}.");
        figure.note = [figure.note.as_str(), &bars].join(" ").trim().to_owned();
    }
    figure.legend = legend(&series);
    figure.drawings.extend(draw::bars(
        &Axes {
            x: &along.replace('_', " "),
            y: &up.replace('_', " "),
        },
        &table.cols,
        &series,
        &paper,
        &intervals,
    ));
    (!figure.drawings.is_empty()).then_some(figure)
}

/// Whether every number was measured on what an attack made, and columns distinguish attacks.
fn of_attacks(table: &PaperTable, recorded: &Recorded) -> bool {
    let step = &recorded.steps[table.step];
    let attack = |cell: &Cell| {
        let read = step.read_by(&cell.source.as_ref()?.port)?;
        let made = recorded.steps[read.step?].execution.as_ref()?;
        attack_of(&made.key)
    };
    let cells = table.cells.iter();
    let named: Option<BTreeSet<(usize, &str)>> = cells
        .map(|((_, col), cell)| Some((*col, attack(cell)?)))
        .collect();
    named.is_some_and(|named| {
        let names: BTreeSet<&str> = named.iter().map(|(_, name)| *name).collect();
        named.len() == table.cols.len() && names.len() > 1
    })
}

/// Rows and columns with the same names, such as classes: a grid shows more than bars.
fn is_square(table: &PaperTable) -> bool {
    let shared = table.rows.iter().filter(|row| table.cols.contains(row));
    table.rows.len() > 2 && shared.count() == table.rows.len()
}

fn data(table: &PaperTable) -> Data {
    let row = |((r, c), cell): (&(usize, usize), &Cell)| {
        let shown = |number: Option<f64>| number.map(columns::short).unwrap_or_default();
        let names = [table.rows[*r].clone(), table.cols[*c].clone()];
        let (low, high) = (
            cell.interval.map(|at| at.low),
            cell.interval.map(|at| at.high),
        );
        let numbers = [cell.mean, cell.sd, low, high, cell.paper].map(shown);
        names.into_iter().chain(numbers).collect()
    };
    Data {
        columns: ["row", "col", "value", "sd", "low", "high", "paper"]
            .map(str::to_owned)
            .to_vec(),
        rows: table.cells.iter().map(row).collect(),
        total: table.cells.len(),
    }
}
