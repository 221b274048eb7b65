//! Columns of lists as figures: signals over time, and pictures.

use arrow::record_batch::RecordBatch;

use super::draw::{self, Mark, Series};
use super::missing::no_column;
use super::spec::FigureSpec;
use super::{Figure, images, legend};
use crate::results::columns;

/// Each row's lists as lines over time, and below them the last minus the first: the perturbation.
pub fn series(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let parts = spec.columns.iter();
    let parts: Vec<Vec<Vec<f64>>> = parts
        .map(|name| lists(table, name))
        .collect::<Result<_, _>>()?;
    let over_time = |values: &[f64]| -> Vec<(f64, f64)> {
        values
            .iter()
            .enumerate()
            .map(|(step, value)| (step as f64, *value))
            .collect()
    };
    for row in 0..table.num_rows().min(spec.rows) {
        let each = spec.columns.iter().zip(&parts).map(|(name, part)| Series {
            name: name.clone(),
            values: over_time(&part[row]),
        });
        let mut lines: Vec<Series<Vec<(f64, f64)>>> = each.collect();
        if let ([first, .., last], true) = (&parts[..], parts.len() > 1) {
            let change = last[row]
                .iter()
                .zip(&first[row])
                .map(|(after, before)| after - before);
            let change: Vec<f64> = change.collect();
            lines.push(Series {
                name: "change".to_owned(),
                values: over_time(&change),
            });
        }
        figure.legend = legend(&lines);
        figure
            .drawings
            .extend(draw::plane_of(&spec.axes(), &lines, Mark::Line));
    }
    Ok(())
}

/// Each row's lists as pictures side by side, and the last minus the first beside them.
pub fn pictures(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let parts = spec.columns.iter();
    let parts: Vec<Vec<Vec<f64>>> = parts
        .map(|name| lists(table, name))
        .collect::<Result<_, _>>()?;
    let width = spec
        .width
        .ok_or("images need a `width`: the number of pixels per row")?;
    let all = || {
        parts
            .iter()
            .flatten()
            .flatten()
            .filter(|number| number.is_finite())
    };
    let low = all().copied().fold(f64::INFINITY, f64::min);
    let high = all().copied().fold(f64::NEG_INFINITY, f64::max);
    for row in 0..table.num_rows().min(spec.rows) {
        let each = spec.columns.iter().zip(&parts);
        let each = each.map(|(name, part)| images::picture(name, &part[row], width, low, high));
        let side: Option<Vec<_>> = each.collect();
        let mut side = side.ok_or_else(|| {
            let found = parts[0][row].len();
            format!("row {row} has {found} numbers, which is not a multiple of the width {width}")
        })?;
        if let ([first, .., last], true) = (&parts[..], parts.len() > 1) {
            let change: Vec<f64> = last[row]
                .iter()
                .zip(&first[row])
                .map(|(a, b)| a - b)
                .collect();
            let most = change.iter().map(|x| x.abs()).fold(1e-12, f64::max);
            let name = images::change(most);
            side.extend(images::picture(&name, &change, width, -most, most));
        }
        figure.pictures.push(side);
    }
    Ok(())
}

fn lists(table: &RecordBatch, name: &str) -> Result<Vec<Vec<f64>>, String> {
    columns::lists(table, name).ok_or_else(|| no_column(table, name, "of lists of numbers"))
}
