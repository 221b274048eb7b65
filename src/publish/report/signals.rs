//! Signals before and after an attack, drawn: lines over time, or pictures side by side.

use arrow::record_batch::RecordBatch;
use serde::Serialize;
use stages::tables::examples as example_columns;

use super::figures::draw::{self, Axes, Mark, Series};
use super::figures::{Picture, change as scale, legend, picture};
use crate::results::columns;

/// A signal before and after, drawn.
#[derive(Serialize)]
pub struct Drawing {
    /// Which table.
    pub table: usize,
    /// Which of its rows.
    pub row: usize,
    /// Lines over time; safe to embed.
    pub svg: Option<String>,
    /// What the lines are, with their colours.
    pub legend: Vec<(String, String)>,
    /// Which part of the signal is drawn, if not all.
    pub part: Option<String>,
    /// Or pictures.
    pub pictures: Vec<Picture>,
}

/// How many signals of a table are drawn.
const DRAWN: usize = 24;
/// How many of all tables: a page of thousands takes seconds to open.
pub const ALL: usize = 240;
/// A signal with at least this many channels is drawn as a picture.
const CHANNELS: usize = 16;

/// Draws the first of some rows.
pub fn drawn(
    number: usize,
    table: &RecordBatch,
    rows: &[usize],
    channels: Option<usize>,
    most: usize,
) -> Vec<Drawing> {
    let [Some(before), Some(after)] = [example_columns::ORIGINAL, example_columns::ADVERSARIAL]
        .map(|name| columns::lists(table, name))
    else {
        return Vec::new();
    };
    let channels = channels.unwrap_or(1);
    let draw = |(place, row): (usize, &usize)| {
        let (old, new) = (&before[*row], &after[*row]);
        let change: Vec<f64> = new.iter().zip(old).map(|(new, old)| new - old).collect();
        if channels >= CHANNELS {
            let most = change.iter().map(|x| x.abs()).fold(1e-12, f64::max);
            let ends = old.iter().chain(new).filter(|x| x.is_finite());
            let (low, high) = ends.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
            let scaled = scale(most);
            let sides = [
                ("before", old, low, high),
                ("after", new, low, high),
                (scaled.as_str(), &change, -most, most),
            ];
            let pictures = sides.into_iter();
            let pictures = pictures
                .filter_map(|(name, side, low, high)| picture(name, side, channels, low, high));
            return Drawing {
                table: number,
                row: place,
                svg: None,
                legend: Vec::new(),
                part: None,
                pictures: pictures.collect(),
            };
        }
        // Of a signal with a few channels the first is drawn.
        let over = |side: &[f64]| -> Vec<(f64, f64)> {
            let first = side.iter().step_by(channels).enumerate();
            first.map(|(step, x)| (step as f64, *x)).collect()
        };
        let lines = [("before", old), ("after", new), ("change", &change)];
        let lines = lines.map(|(name, side)| Series {
            name: name.to_owned(),
            values: over(side),
        });
        let svg = draw::plane_of(
            &Axes {
                x: "step",
                y: "value",
            },
            &lines,
            Mark::Line,
        );
        Drawing {
            table: number,
            row: place,
            svg,
            legend: legend(&lines),
            part: (channels > 1).then(|| format!("the first of {channels} channels")),
            pictures: Vec::new(),
        }
    };
    rows.iter()
        .enumerate()
        .take(DRAWN.min(most))
        .map(draw)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float32Array, ListArray};
    use arrow::datatypes::Float32Type;

    use super::*;

    fn signals() -> RecordBatch {
        let lists = |x: f32| -> ArrayRef {
            let row = Some((0..32).map(|n| Some(x + n as f32)).collect::<Vec<_>>());
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>([row]))
        };
        let ids: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
        let columns = [
            ("id", ids),
            ("original", lists(0.0)),
            ("adversarial", lists(0.5)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn lines_have_a_legend_and_say_what_is_not_drawn() {
        let drawn = |channels| drawn(0, &signals(), &[0], Some(channels), 9).remove(0);
        let one = drawn(1);
        let names: Vec<&str> = one.legend.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["before", "after", "change"]);
        assert!(one.svg.is_some() && one.part.is_none());
        let first = drawn(4);
        assert_eq!(first.part.as_deref(), Some("the first of 4 channels"));
        let picture = drawn(16);
        let names: Vec<&str> = picture.pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["before", "after", "change (±0.5)"]);
    }
}
