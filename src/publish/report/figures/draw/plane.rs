//! Points of two numbers: lines, paths and clouds.

use plotters::prelude::*;

use super::{Axes, COLOURS, HEIGHT, Mark, Series, drawing, mesh, plane, span};

/// An interval at each x: from, to.
pub type Band = Vec<(f64, f64, f64)>;

/// Points of two numbers: lines, paths or clouds.
pub fn plane_of(axes: &Axes<'_>, series: &[Series<Vec<(f64, f64)>>], mark: Mark) -> Option<String> {
    plane_with_bands(axes, series, &[], mark)
}

/// The same, with a band behind each series that has one.
pub fn plane_with_bands(
    axes: &Axes<'_>,
    series: &[Series<Vec<(f64, f64)>>],
    bands: &[Band],
    mark: Mark,
) -> Option<String> {
    let all = || series.iter().flat_map(|one| &one.values);
    let ends = bands
        .iter()
        .flatten()
        .flat_map(|(_, low, high)| [*low, *high]);
    let x = span(all().map(|point| point.0), false)?;
    let y = span(all().map(|point| point.1).chain(ends), false)?;
    drawing(640, if mark == Mark::Line { HEIGHT } else { 420 }, |area| {
        let mut chart = plane(&area, x, y, 50)?;
        mesh(&mut chart, axes, true)?;
        for (s, band) in bands.iter().enumerate() {
            let low = band.iter().map(|(x, low, _)| (*x, *low));
            let high = band.iter().rev().map(|(x, _, high)| (*x, *high));
            let around: Vec<(f64, f64)> = low.chain(high).collect();
            let fill = COLOURS[s % COLOURS.len()].mix(0.18).filled();
            chart.draw_series([Polygon::new(around, fill)])?;
        }
        for (s, one) in series.iter().enumerate() {
            let colour = COLOURS[s % COLOURS.len()];
            let size = if mark == Mark::Point { 2 } else { 3 };
            let strands = one.values.split(|point| point.0.is_nan());
            let strands: Vec<&[(f64, f64)]> = strands.filter(|one| !one.is_empty()).collect();
            // Many lines of one colour are seen through each other.
            let many = strands.len() > 4;
            let through = mark == Mark::Point || many;
            let ink = colour.mix(if through { 0.6 } else { 1.0 });
            for strand in strands {
                let seen = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
                let mut points: Vec<(f64, f64)> = strand.iter().filter(seen).copied().collect();
                if mark == Mark::Line {
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
                let dots: &[(f64, f64)] = match mark {
                    Mark::Point => &points,
                    Mark::Path => &points[..points.len().min(1)],
                    Mark::Line if points.len() <= 30 && !many => &points,
                    Mark::Line => &[],
                };
                chart.draw_series(dots.iter().map(|dot| Circle::new(*dot, size, ink.filled())))?;
                if mark != Mark::Point {
                    let width = if many { 1 } else { 2 };
                    chart.draw_series(LineSeries::new(points, ink.stroke_width(width)))?;
                }
            }
        }
        Ok(())
    })
}
