//! Grids of numbers: confusion, attention, heat.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Axes, COLOURS, FONT, INK, LINE, clipped, drawing, finite, names_along, span, write};
use crate::results::columns::short;

/// A grid of numbers, darker where they are larger; small grids have the numbers written in.
pub fn matrix(
    axes: &Axes<'_>,
    rows: &[String],
    cols: &[String],
    value: impl Fn(usize, usize) -> Option<f64>,
) -> Option<String> {
    let places = || (0..rows.len()).flat_map(|r| (0..cols.len()).map(move |c| (r, c)));
    let (low, high) = span(places().filter_map(|(r, c)| value(r, c)), true)?;
    let written = rows.len() * cols.len() <= 144;
    let widest = cols
        .iter()
        .map(|name| clipped(name).chars().count())
        .max()?;
    let cell = if written {
        (widest * 8 + 8).max(64)
    } else {
        (900 / cols.len().max(1)).clamp(3, 40)
    };
    let down = if written {
        44
    } else {
        (700 / rows.len().max(1)).clamp(3, 40)
    };
    let names = rows
        .iter()
        .map(|name| clipped(name).chars().count())
        .max()?;
    let (left, below) = (names as u32 * 8 + 40, 60);
    let (width, height) = (
        (cols.len() * cell) as u32 + left + 20,
        (rows.len() * down) as u32 + below + 16,
    );
    drawing(width.max(240), height, |area| {
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .set_label_area_size(LabelAreaPosition::Left, left)
            .set_label_area_size(LabelAreaPosition::Bottom, below - 8)
            .build_cartesian_2d(0.0..cols.len() as f64, 0.0..rows.len() as f64)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_mesh()
            .axis_style(LINE.stroke_width(0))
            .x_labels(0)
            .y_labels(0);
        mesh.x_desc(axes.x)
            .y_desc(axes.y)
            .axis_desc_style(FONT.into_font().color(&INK))
            .draw()?;
        // The first row is on top, as in a table.
        let top = |r: usize| (rows.len() - r) as f64;
        for (r, c) in places() {
            let Some(number) = finite(value(r, c)) else {
                continue;
            };
            let share = ((number - low) / (high - low)).clamp(0.0, 1.0);
            let corners = [
                (c as f64 + 0.01, top(r) - 0.01),
                (c as f64 + 0.99, top(r) - 0.99),
            ];
            let fill = COLOURS[0].mix(0.04 + 0.56 * share).filled();
            chart.draw_series([Rectangle::new(corners, fill)])?;
            if written {
                let middle = (c as f64 + 0.5, top(r) - 0.5);
                write(&mut chart, &short(number), middle, (0, 0), HPos::Center)?;
            }
        }
        let every = |count: usize, room: usize| count.div_ceil((room / 16).max(1)).max(1);
        for (r, name) in rows
            .iter()
            .enumerate()
            .step_by(every(rows.len(), rows.len() * down))
        {
            let at = (0.0, top(r) - 0.5);
            write(&mut chart, &clipped(name), at, (-8, 0), HPos::Right)?;
        }
        let step = every(cols.len(), cols.len() * cell * 16 / 60);
        let places = cols
            .iter()
            .enumerate()
            .step_by(if written { 1 } else { step });
        names_along(
            &mut chart,
            places.map(|(c, name)| (c as f64 + 0.5, name)),
            0.0,
        )
    })
}
