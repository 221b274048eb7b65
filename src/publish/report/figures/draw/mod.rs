//! Charts to SVG, by plotters. Takes numbers and names; knows nothing of tables or pages.
//!
//! Two colours stand for the page's ink and lines: the style sheet replaces them, so that one
//! drawing serves light, dark and print. Legends are the page's, from [`COLOURS`].

mod bars;
mod boxes;
mod matrix;
mod plane;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::columns::short;
use crate::visible::visible;

pub use bars::bars;
pub use boxes::boxes;
pub use matrix::matrix;
pub use plane::{Band, plane_of, plane_with_bands};

/// Series in order; colour-blind safe (Okabe and Ito's palette).
pub const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x8C, 0x6D, 0x31),
    RGBColor(0x77, 0x77, 0x77),
];
const INK: RGBColor = RGBColor(0x1A, 0x1A, 0x1A);
const LINE: RGBColor = RGBColor(0xD9, 0xD9, 0xD9);
const FONT: (&str, i32) = ("sans-serif", 15);
const HEIGHT: u32 = 340;

/// What an axis is called.
pub struct Axes<'a> {
    /// Along.
    pub x: &'a str,
    /// Up.
    pub y: &'a str,
}

/// A set of bars or points under one name.
pub struct Series<T> {
    /// What the legend calls it.
    pub name: String,
    /// Its numbers.
    pub values: T,
}

/// No point: a line ends here, and what follows is another in the same colour.
pub const BREAK: (f64, f64) = (f64::NAN, f64::NAN);

/// How points become a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through them, from left to right.
    Line,
    /// A line through them in their own order, with a dot where it begins.
    Path,
    /// Points alone.
    Point,
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The colour of a series, as a page writes it.
pub fn colour(series: usize) -> String {
    let RGBColor(r, g, b) = COLOURS[series % COLOURS.len()];
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Draws into a string. A drawing that fails is left out: its numbers are in the table too.
fn drawing(
    width: u32,
    height: u32,
    draw: impl FnOnce(DrawingArea<SVGBackend<'_>, Shift>) -> Drawn,
) -> Option<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
    let drawn = draw(area.clone()).and_then(|()| Ok(area.present()?));
    drop(area);
    // Only names from data can hold what cannot be seen: the drawing itself is plain.
    drawn.ok().map(|()| visible(&svg).into_owned())
}

fn plane<'a, 'b>(
    area: &DrawingArea<SVGBackend<'b>, Shift>,
    x: (f64, f64),
    y: (f64, f64),
    below: u32,
) -> Drawn<Plane<'a, 'b>> {
    let chart = ChartBuilder::on(area)
        .margin(10)
        .set_label_area_size(LabelAreaPosition::Left, 62)
        .set_label_area_size(LabelAreaPosition::Bottom, below)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
    Ok(chart)
}

fn mesh(chart: &mut Plane<'_, '_>, axes: &Axes<'_>, numbers_along: bool) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE.stroke_width(1))
        .axis_style(LINE.stroke_width(1))
        .label_style(FONT.into_font().color(&INK))
        .axis_desc_style(FONT.into_font().color(&INK))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .y_labels(6)
        .x_labels(if numbers_along { 8 } else { 0 });
    let shown = |number: &f64| short(if number.abs() < 1e-12 { 0.0 } else { *number });
    mesh.x_label_formatter(&shown).y_label_formatter(&shown);
    Ok(mesh.draw()?)
}

fn names_along<'n>(
    chart: &mut Plane<'_, '_>,
    places: impl Iterator<Item = (f64, &'n String)>,
    bottom: f64,
) -> Drawn {
    for (x, name) in places {
        write(chart, &clipped(name), (x, bottom), (0, 14), HPos::Center)?;
    }
    Ok(())
}

/// Writes words at a place of the chart, moved by some pixels.
fn write(
    chart: &mut Plane<'_, '_>,
    words: &str,
    at: (f64, f64),
    moved: (i32, i32),
    side: HPos,
) -> Drawn {
    let style = FONT
        .into_font()
        .color(&INK)
        .pos(Pos::new(side, VPos::Center));
    let text = Text::new(words.to_owned(), moved, style);
    chart.draw_series([EmptyElement::at(at) + text])?;
    Ok(())
}

/// A name that fits beside an axis.
fn clipped(name: &str) -> String {
    const MOST: usize = 22;
    match name.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

fn finite(number: Option<f64>) -> Option<f64> {
    number.filter(|number| number.is_finite())
}

/// From the smallest to the largest number with a little room, and with zero if bars stand on
/// it. Nothing if there is no number at all.
fn span(numbers: impl Iterator<Item = f64>, with_zero: bool) -> Option<(f64, f64)> {
    let finite = numbers.filter(|number| number.is_finite());
    let ends = finite.fold(None, |ends: Option<(f64, f64)>, number| {
        let (low, high) = ends.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    });
    let (mut low, mut high) = ends?;
    // Shares fill their axis, so that figures can be compared at a glance.
    if with_zero && low >= 0.0 && high <= 1.0 && high > 0.3 {
        return Some((0.0, 1.0));
    }
    if with_zero {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    let room = match high - low {
        0.0 => high.abs().max(1.0) * 0.5,
        size => size * 0.05,
    };
    match with_zero {
        true => Some((if low < 0.0 { low - room } else { low }, high + room)),
        false => Some((low - room, high + room)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_turn_a_drawing_around() {
        let axes = Axes {
            x: "a\u{202E}b",
            y: "",
        };
        let one = Series {
            name: String::new(),
            values: vec![Some(1.0)],
        };
        let svg = bars(&axes, &names(&["\u{200F}c"]), &[one], &[], &[]).unwrap();
        assert!(
            svg.contains("a⟨U+202E⟩b") && svg.contains("⟨U+200F⟩c"),
            "{svg}"
        );
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_chart_draws_and_escapes_what_it_is_given() {
        let axes = Axes {
            x: "<x>",
            y: "\"y\" & z",
        };
        let evil = names(&["<script>alert(1)</script>", "b"]);
        let series = || Series {
            name: String::new(),
            values: vec![Some(0.5), None],
        };
        let charts = [
            bars(
                &axes,
                &evil,
                &[series()],
                &[vec![Some(0.4), Some(f64::NAN)]],
                &[vec![Some((0.4, 0.6)), None]],
            ),
            plane_with_bands(
                &axes,
                &[Series {
                    name: String::new(),
                    values: vec![(0.0, 1.0), (1.0, 1.0)],
                }],
                &[vec![(0.0, 0.5, 1.5), (1.0, 0.75, 1.25)]],
                Mark::Line,
            ),
            matrix(&axes, &evil, &evil, |r, c| Some((r + c) as f64)),
            boxes(
                &axes,
                &evil,
                &[Series {
                    name: String::new(),
                    values: vec![vec![0.5, 0.6, 9.0], vec![]],
                }],
            ),
            plane_of(
                &axes,
                &[Series {
                    name: String::new(),
                    values: vec![(0.0, 1.0), (2.0, f64::NAN), (1.0, 1.0)],
                }],
                Mark::Line,
            ),
        ];
        for chart in charts {
            let svg = chart.expect("a drawing");
            assert!(
                svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
                "{svg}"
            );
            assert!(!svg.contains("<script"), "{svg}");
            assert!(svg.contains("&lt;x&gt;"), "{svg}");
            assert!(!svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_drawing() {
        let axes = Axes { x: "", y: "" };
        assert!(bars(&axes, &names(&["a"]), &[], &[], &[]).is_none());
        assert!(matrix(&axes, &[], &[], |_, _| None).is_none());
        assert!(plane_of(&axes, &[], Mark::Point).is_none());
    }

    #[test]
    fn axes_have_room_and_bars_have_zero() {
        assert_eq!(span([0.2, 0.9].into_iter(), true), Some((0.0, 1.0)));
        assert_eq!(span([2.0, 10.0].into_iter(), true), Some((0.0, 10.5)));
        assert_eq!(span([5.0].into_iter(), false), Some((2.5, 7.5)));
        assert_eq!(span([f64::NAN].into_iter(), false), None);
    }
}
