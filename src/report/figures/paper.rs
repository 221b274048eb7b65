//! The tables of a paper as figures.

use super::draw::{self, Axes, Series};
use super::{Data, Figure, legend};
use crate::report::columns;
use crate::report::gather::Recorded;
use crate::report::tables::{Cell, PaperTable};

/// A table of a paper as a figure: a matrix for confusion, bars otherwise, if it has more than
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
    if metric == "confusion" {
        let axes = Axes {
            x: "answer",
            y: "class",
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
    if series.len() < table.rows.len() {
        figure.note = format!(
            "The first {} of {} rows are drawn.",
            series.len(),
            table.rows.len()
        );
    }
    let up = if metric.is_empty() { "share" } else { metric };
    let along = if metric == "words" {
        "words changed"
    } else {
        ""
    };
    figure.paper = table.has_paper();
    figure.legend = legend(&series);
    figure.drawings.extend(draw::bars(
        &Axes {
            x: along,
            y: &up.replace('_', " "),
        },
        &table.cols,
        &series,
        &paper,
    ));
    (!figure.drawings.is_empty()).then_some(figure)
}

fn data(table: &PaperTable) -> Data {
    let row = |((r, c), cell): (&(usize, usize), &Cell)| {
        let shown = |number: Option<f64>| number.map(columns::short).unwrap_or_default();
        let names = [table.rows[*r].clone(), table.cols[*c].clone()];
        let numbers = [cell.mean, cell.spread, cell.paper].map(shown);
        names.into_iter().chain(numbers).collect()
    };
    Data {
        columns: ["row", "col", "value", "spread", "paper"]
            .map(str::to_owned)
            .to_vec(),
        rows: table.cells.iter().map(row).collect(),
        total: table.cells.len(),
    }
}
