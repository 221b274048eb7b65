//! From a table and what was spec of it to a figure.

use arrow::record_batch::RecordBatch;

use super::draw::{self, Axes, Mark, Series};
use super::missing::no_column;
use super::spec::{FigureSpec, Kind};
use super::{Data, Figure, bands, legend, lists};
use crate::results::columns;

/// The most series that colours can distinguish; the rest are left out, with a note.
const SERIES: usize = draw::COLOURS.len();

/// Makes a requested figure from its table, or returns why it cannot be drawn.
pub fn make(spec: &FigureSpec, table: &RecordBatch, step: Option<usize>) -> Result<Figure, String> {
    let mut figure = Figure {
        title: spec.title.clone(),
        note: spec.note.clone(),
        drawings: Vec::new(),
        pictures: Vec::new(),
        legend: Vec::new(),
        paper: false,
        source: spec.table.clone(),
        step,
        data: Data::of(table),
    };
    match spec.kind {
        Kind::Bars => bars(spec, table, &mut figure)?,
        Kind::Boxes => boxes(spec, table, &mut figure)?,
        Kind::Lines => plane(spec, table, Mark::Line, &mut figure)?,
        Kind::Path => plane(spec, table, Mark::Path, &mut figure)?,
        Kind::Points => plane(spec, table, Mark::Point, &mut figure)?,
        Kind::Histogram => histogram(spec, table, &mut figure)?,
        Kind::Matrix => matrix(spec, table, &mut figure)?,
        Kind::Series => lists::series(spec, table, &mut figure)?,
        Kind::Images => lists::pictures(spec, table, &mut figure)?,
    }
    match figure.drawings.is_empty() && figure.pictures.is_empty() {
        true => Err("no numbers to draw".to_owned()),
        false => Ok(figure),
    }
}

fn numbers(table: &RecordBatch, name: &str) -> Result<Vec<Option<f64>>, String> {
    columns::numbers(table, name).ok_or_else(|| no_column(table, name, "of numbers"))
}

fn texts(table: &RecordBatch, name: &str) -> Result<Vec<String>, String> {
    columns::texts(table, name).ok_or_else(|| no_column(table, name, ""))
}

/// The series of each row: by the column `by`, or one for all.
fn groups(spec: &FigureSpec, table: &RecordBatch) -> Result<(Vec<String>, Vec<usize>), String> {
    let Some(by) = &spec.by else {
        return Ok((
            vec![spec.y.clone().unwrap_or_default()],
            vec![0; table.num_rows()],
        ));
    };
    let mut names: Vec<String> = Vec::new();
    let of = texts(table, by)?
        .into_iter()
        .map(|name| place(&mut names, name));
    let of = of.collect();
    Ok((names, of))
}

fn place(names: &mut Vec<String>, name: String) -> usize {
    names
        .iter()
        .position(|known| *known == name)
        .unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
}

fn too_many(series: usize, figure: &mut Figure) {
    if series > SERIES {
        let note = format!("The first {SERIES} of {series} series are drawn.");
        figure.note = [figure.note.as_str(), &note].join(" ").trim().to_owned();
    }
}

fn bars(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let (x, y) = (texts(table, &spec.x)?, numbers(table, spec.upward()?)?);
    let (names, of) = groups(spec, table)?;
    let mut along = Vec::new();
    let places: Vec<usize> = x.into_iter().map(|name| place(&mut along, name)).collect();
    let series = names.into_iter().map(|name| Series {
        name,
        values: vec![None; along.len()],
    });
    let mut series: Vec<Series<Vec<Option<f64>>>> = series.collect();
    for (row, value) in y.into_iter().enumerate() {
        let spot = &mut series[of[row]].values[places[row]];
        if spot.is_some() && value.is_some() {
            let (x, by) = (&spec.x, spec.by.as_deref().unwrap_or("by"));
            return Err(format!(
                "two rows have the {x} `{}`: aggregate them in `query`, or distinguish them with `{by}`",
                along[places[row]]
            ));
        }
        *spot = value;
    }
    too_many(series.len(), figure);
    series.truncate(SERIES);
    figure.legend = legend(&series);
    figure
        .drawings
        .extend(draw::bars(&spec.axes(), &along, &series, &[], &[]));
    Ok(())
}

fn boxes(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let (x, y) = (texts(table, &spec.x)?, numbers(table, spec.upward()?)?);
    let (names, of) = groups(spec, table)?;
    let mut along = Vec::new();
    let places: Vec<usize> = x.into_iter().map(|name| place(&mut along, name)).collect();
    let series = names.into_iter().map(|name| Series {
        name,
        values: vec![Vec::new(); along.len()],
    });
    let mut series: Vec<Series<Vec<Vec<f64>>>> = series.collect();
    for (row, value) in y.into_iter().enumerate() {
        series[of[row]].values[places[row]].extend(value);
    }
    too_many(series.len(), figure);
    series.truncate(SERIES);
    figure.legend = legend(&series);
    figure
        .drawings
        .extend(draw::boxes(&spec.axes(), &along, &series));
    Ok(())
}

fn plane(
    spec: &FigureSpec,
    table: &RecordBatch,
    mark: Mark,
    figure: &mut Figure,
) -> Result<(), String> {
    let (x, y) = (numbers(table, &spec.x)?, numbers(table, spec.upward()?)?);
    let (names, of) = groups(spec, table)?;
    let series = names.into_iter().map(|name| Series {
        name,
        values: Vec::new(),
    });
    let mut series: Vec<Series<Vec<(f64, f64)>>> = series.collect();
    let each = spec.each.as_ref().map(|name| texts(table, name));
    let each = each.transpose()?;
    let mut last: Vec<Option<&String>> = vec![None; series.len()];
    for (row, (x, y)) in x.into_iter().zip(y).enumerate() {
        let values = &mut series[of[row]].values;
        let now = each.as_ref().map(|each| &each[row]);
        if std::mem::replace(&mut last[of[row]], now) != now {
            values.push(draw::BREAK);
        }
        if let (Some(x), Some(y)) = (x, y) {
            values.push((x, y));
        }
    }
    too_many(series.len(), figure);
    series.truncate(SERIES);
    let mut bands = vec![draw::Band::new(); series.len()];
    if mark == Mark::Line && each.is_none() {
        for (one, band) in series.iter_mut().zip(&mut bands) {
            if let Some((line, around)) = bands::averaged(&one.values) {
                (one.values, *band) = (line, around);
            }
        }
    }
    if bands.iter().any(|band| !band.is_empty()) {
        figure.note = [figure.note.as_str(), bands::NOTE]
            .join(" ")
            .trim()
            .to_owned();
    }
    figure.legend = legend(&series);
    let drawing = draw::plane_with_bands(&spec.axes(), &series, &bands, mark);
    figure.drawings.extend(drawing);
    Ok(())
}

fn histogram(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let x = numbers(table, &spec.x)?;
    let (names, of) = groups(spec, table)?;
    let seen = x
        .iter()
        .zip(&of)
        .filter_map(|(x, of)| Some((x.filter(|x| x.is_finite())?, *of)));
    let seen: Vec<(f64, usize)> = seen.collect();
    let (bins, counts) = count(&seen, names.len());
    let series = names.into_iter().zip(counts).map(|(name, values)| Series {
        name,
        values: values.into_iter().map(|n| Some(n as f64)).collect(),
    });
    let mut series: Vec<Series<Vec<Option<f64>>>> = series.collect();
    too_many(series.len(), figure);
    series.truncate(SERIES);
    figure.legend = legend(&series);
    figure
        .drawings
        .extend(draw::bars(&spec.axes(), &bins, &series, &[], &[]));
    Ok(())
}

/// How many numbers fall where: at each integer if there are few, otherwise in twenty
/// intervals of one width.
pub fn count(seen: &[(f64, usize)], series: usize) -> (Vec<String>, Vec<Vec<usize>>) {
    const BINS: usize = 20;
    let low = seen.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let high = seen
        .iter()
        .map(|(x, _)| *x)
        .fold(f64::NEG_INFINITY, f64::max);
    let whole = seen.iter().all(|(x, _)| x.fract() == 0.0) && high - low <= 40.0;
    let (names, width): (Vec<String>, f64) = match () {
        () if seen.is_empty() => (Vec::new(), 1.0),
        () if whole => {
            let bins = (high - low) as usize + 1;
            (
                (0..bins).map(|n| columns::short(low + n as f64)).collect(),
                1.0,
            )
        }
        () => {
            let width = if high > low {
                (high - low) / BINS as f64
            } else {
                1.0
            };
            let from = |n: usize| columns::short(low + n as f64 * width);
            ((0..BINS).map(from).collect(), width)
        }
    };
    let mut counts = vec![vec![0; names.len()]; series];
    for (x, of) in seen {
        let bin = ((x - low) / width) as usize;
        counts[*of][bin.min(names.len() - 1)] += 1;
    }
    (names, counts)
}

fn matrix(spec: &FigureSpec, table: &RecordBatch, figure: &mut Figure) -> Result<(), String> {
    let (x, y) = (texts(table, &spec.x)?, texts(table, spec.upward()?)?);
    let name = spec.value.as_deref().unwrap_or("value");
    let values = numbers(table, name)?;
    let (mut cols, mut rows) = (Vec::new(), Vec::new());
    let mut cells = std::collections::BTreeMap::new();
    for ((x, y), value) in x.into_iter().zip(y).zip(values) {
        let spot = (place(&mut rows, y), place(&mut cols, x));
        if cells.insert(spot, value).is_some() {
            let (y, x) = (&rows[spot.0], &cols[spot.1]);
            return Err(format!(
                "two rows have the cell `{y}`, `{x}`: aggregate them in `query`"
            ));
        }
    }
    let value = |r: usize, c: usize| cells.get(&(r, c)).copied().flatten();
    figure
        .drawings
        .extend(draw::matrix(&spec.axes(), &rows, &cols, value));
    Ok(())
}

impl FigureSpec {
    pub(super) fn axes(&self) -> Axes<'_> {
        Axes {
            x: &self.x_label,
            y: &self.y_label,
        }
    }

    fn upward(&self) -> Result<&str, String> {
        self.y
            .as_deref()
            .ok_or_else(|| "it has no `y`: the column on the vertical axis".to_owned())
    }
}
