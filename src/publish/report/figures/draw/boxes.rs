//! Box plots: quartiles as a box, whiskers to the furthest number within 1.5 interquartile ranges, a dot for each
//! number beyond them.

use plotters::prelude::*;

use super::{Axes, COLOURS, HEIGHT, INK, Series, clipped, drawing, mesh, names_along, plane, span};

/// What a box shows of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Quartiles {
    /// The ends of the whiskers.
    pub whiskers: [f64; 2],
    /// The first quartile, the median, the third.
    pub quartiles: [f64; 3],
    /// Numbers beyond the whiskers.
    pub outliers: Vec<f64>,
}

impl Quartiles {
    /// Of numbers in any order; quantiles are interpolated linearly, as NumPy's default is.
    pub fn of(numbers: &[f64]) -> Option<Quartiles> {
        let mut sorted: Vec<f64> = numbers.iter().copied().filter(|n| n.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let quantile = |share: f64| {
            let at = share * last as f64;
            let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            below + (above - below) * at.fract()
        };
        let quartiles = [quantile(0.25), quantile(0.5), quantile(0.75)];
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let inside = |n: &&f64| (quartiles[0] - reach..=quartiles[2] + reach).contains(*n);
        let within: Vec<f64> = sorted.iter().filter(inside).copied().collect();
        let outliers = sorted.iter().filter(|n| !inside(n)).copied().collect();
        Some(Quartiles {
            whiskers: [*within.first()?, *within.last()?],
            quartiles,
            outliers,
        })
    }
}

/// Groups of boxes, one box for each series.
pub fn boxes(
    axes: &Axes<'_>,
    groups: &[String],
    series: &[Series<Vec<Vec<f64>>>],
) -> Option<String> {
    let numbers = series.iter().flat_map(|one| one.values.iter().flatten());
    let (low, high) = span(numbers.copied(), false)?;
    let widest = groups.iter().map(|name| clipped(name).chars().count());
    let width = groups.len() * (widest.max()? * 8).max(series.len() * 18 + 12) + 110;
    drawing(width.clamp(480, 2400) as u32, HEIGHT, |area| {
        let mut chart = plane(&area, (0.0, groups.len() as f64), (low, high), 50)?;
        mesh(&mut chart, axes, false)?;
        let each = 0.8 / series.len().max(1) as f64;
        for (s, one) in series.iter().enumerate() {
            let colour = COLOURS[s % COLOURS.len()];
            for (group, numbers) in one.values.iter().enumerate() {
                let Some(shown) = Quartiles::of(numbers) else {
                    continue;
                };
                let left = group as f64 + 0.1 + each * s as f64;
                let (right, middle) = (left + each * 0.92, left + each * 0.46);
                let [first, median, third] = shown.quartiles;
                let corners = [(left, first), (right, third)];
                chart.draw_series([Rectangle::new(corners, colour.mix(0.35).filled())])?;
                let [least, most] = shown.whiskers;
                let strokes = [
                    (vec![(left, median), (right, median)], 3),
                    (vec![(middle, third), (middle, most)], 1),
                    (vec![(middle, first), (middle, least)], 1),
                ];
                let strokes = strokes
                    .into_iter()
                    .map(|(ends, width)| PathElement::new(ends, INK.stroke_width(width)));
                chart.draw_series(strokes)?;
                let dots = shown.outliers.iter();
                chart.draw_series(dots.map(|n| Circle::new((middle, *n), 2, colour.filled())))?;
            }
        }
        let places = groups.iter().enumerate();
        names_along(
            &mut chart,
            places.map(|(g, name)| (g as f64 + 0.5, name)),
            low,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with numpy.percentile and matplotlib.cbook.boxplot_stats on the same numbers.
    #[test]
    fn quartiles_whiskers_and_outliers_are_matplotlibs() {
        let shown = Quartiles::of(&[7.0, 1.0, 2.0, 4.0, f64::NAN, 3.0, 100.0]).unwrap();
        assert_eq!(shown.quartiles, [2.25, 3.5, 6.25]);
        assert_eq!(shown.whiskers, [1.0, 7.0]);
        assert_eq!(shown.outliers, [100.0]);
        let one = Quartiles::of(&[5.0]).unwrap();
        assert_eq!((one.whiskers, one.quartiles), ([5.0; 2], [5.0; 3]));
        assert_eq!(Quartiles::of(&[f64::NAN]), None);
    }
}
