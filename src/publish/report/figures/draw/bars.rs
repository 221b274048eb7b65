//! Groups of bars.

use plotters::prelude::*;

use super::{
    Axes, COLOURS, HEIGHT, INK, Series, clipped, drawing, finite, mesh, names_along, plane, span,
};

/// Groups of bars, one bar for each series, with 95% intervals as error bars and the paper's numbers as strokes
/// across them.
pub fn bars(
    axes: &Axes<'_>,
    groups: &[String],
    series: &[Series<Vec<Option<f64>>>],
    paper: &[Vec<Option<f64>>],
    intervals: &[Vec<Option<(f64, f64)>>],
) -> Option<String> {
    let numbers = series.iter().map(|one| &one.values).chain(paper);
    let numbers = numbers.flatten().filter_map(|value| *value);
    let ends = intervals.iter().flatten().flatten();
    let ends = ends.flat_map(|(low, high)| [*low, *high]);
    let (low, high) = span(numbers.chain(ends), true)?;
    let widest = groups
        .iter()
        .map(|name| clipped(name).chars().count())
        .max()?;
    let width = (groups.len() * (widest * 8).max(series.len() * 14 + 12) + 110).clamp(480, 1400);
    drawing(width as u32, HEIGHT, |area| {
        let mut chart = plane(&area, (0.0, groups.len() as f64), (low, high), 50)?;
        mesh(&mut chart, axes, false)?;
        let each = 0.8 / series.len().max(1) as f64;
        for (s, one) in series.iter().enumerate() {
            let left = |group: usize| group as f64 + 0.1 + each * s as f64;
            let values = one.values.iter().enumerate();
            let values = values.filter_map(|(g, value)| Some((g, finite(*value)?)));
            chart.draw_series(values.map(|(g, value)| {
                let corners = [(left(g), value), (left(g) + each * 0.92, 0.0_f64.max(low))];
                Rectangle::new(corners, COLOURS[s % COLOURS.len()].filled())
            }))?;
            // A bar of no height is still a number: a stroke distinguishes it from a missing one.
            let level = (high - low) * 0.004;
            let flat = one.values.iter().enumerate();
            let flat = flat.filter(|(_, value)| value.is_some_and(|value| value.abs() < level));
            chart.draw_series(flat.map(|(g, _)| {
                let ends = vec![(left(g), 0.0), (left(g) + each * 0.92, 0.0)];
                PathElement::new(ends, COLOURS[s % COLOURS.len()].stroke_width(3))
            }))?;
            let middle = |g: usize| left(g) + each * 0.46;
            let spans = intervals.get(s).into_iter().flatten().enumerate();
            let spans = spans.filter_map(|(g, ends)| Some((g, (*ends)?)));
            chart.draw_series(spans.clone().map(|(g, (from, to))| {
                let ends = vec![(middle(g), from), (middle(g), to)];
                PathElement::new(ends, INK.stroke_width(1))
            }))?;
            let caps = spans.flat_map(|(g, (from, to))| [(g, from), (g, to)]);
            chart.draw_series(caps.map(|(g, at)| {
                let (from, to) = (middle(g) - each * 0.15, middle(g) + each * 0.15);
                PathElement::new(vec![(from, at), (to, at)], INK.stroke_width(1))
            }))?;
            let printed = paper.get(s).into_iter().flatten().enumerate();
            let printed = printed.filter_map(|(g, value)| Some((g, finite(*value)?)));
            chart.draw_series(printed.map(|(g, value)| {
                let ends = vec![
                    (left(g) - each * 0.04, value),
                    (left(g) + each * 0.96, value),
                ];
                PathElement::new(ends, INK.stroke_width(3))
            }))?;
        }
        let places = groups.iter().enumerate();
        names_along(
            &mut chart,
            places.map(|(g, name)| (g as f64 + 0.5, name)),
            low,
        )
    })
}
