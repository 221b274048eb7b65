//! Figures that need no `figures.toml`: known table layouts suggest them.

use stages::tables::{history, summary};
use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use stages::tables::examples as example_columns;
use store::Store;

use super::draw::{self, Axes, Mark, Series};
use super::spec::{FigureSpec, Kind};
use super::{Data, Figure, bands, legend, make};
use crate::results::columns;
use crate::results::recorded::{self, Recorded, Step};
use crate::results::reference::axes;
use crate::results::statistics::{Method, wilson};

/// The most figures of one sort: a sweep of a thousand trainings is not a thousand figures.
const MOST: usize = 24;

/// Clouds of points, learning curves, histograms of words changed, and for a run without tidy
/// results the accuracies of its attacks.
pub fn of_run(store: &Store, recorded: &Recorded, has_tables: bool) -> Vec<Figure> {
    let mut found = Vec::new();
    for (at, step, output, table) in outputs(store, recorded, "scatter") {
        let spec = FigureSpec {
            id: format!("{}: texts on two components", step.label),
            table: step.source(&step.outputs()[output]),
            kind: Kind::Points,
            x: "pc1".to_owned(),
            y: Some("pc2".to_owned()),
            by: Some("label".to_owned()),
            x_label: "first component".to_owned(),
            y_label: "second component".to_owned(),
            ..FigureSpec::default()
        };
        found.extend(from(spec, &thinned(&table, 2000), at));
    }
    found.extend(learning_curves(store, recorded));
    for (at, step, output, table) in outputs(store, recorded, example_columns::SCHEMA.name) {
        found.extend(words_changed(at, step, output, &table));
    }
    if !has_tables {
        found.extend(accuracies(store, recorded));
    }
    found
}

fn outputs<'a>(
    store: &'a Store,
    recorded: &'a Recorded,
    name: &'static str,
) -> impl Iterator<Item = (usize, &'a Step, usize, RecordBatch)> {
    let steps = recorded.steps.iter().enumerate();
    let found = steps.filter_map(move |(at, step)| {
        let output = step
            .outputs()
            .iter()
            .position(|output| output.name == name)?;
        // Words changed are the reason to read examples, and most attacks of a sweep have none.
        let table = recorded::table(store, &step.outputs()[output])?;
        Some((at, step, output, table))
    });
    found.take(MOST)
}

fn from(mut spec: FigureSpec, table: &RecordBatch, step: usize) -> Option<Figure> {
    spec.name_the_rest();
    make(&spec, table, Some(step)).ok()
}

/// Evenly sampled rows: enough to see the shape of a cloud.
fn thinned(table: &RecordBatch, most: usize) -> RecordBatch {
    let rows = table.num_rows();
    if rows <= most {
        return table.clone();
    }
    let picked: Vec<u64> = (0..most).map(|n| (n * rows / most) as u64).collect();
    let picked = arrow::array::UInt64Array::from(picked);
    arrow::compute::take_record_batch(table, &picked).unwrap_or_else(|_| table.slice(0, most))
}

fn learning_curves(store: &Store, recorded: &Recorded) -> Option<Figure> {
    let mut series = Vec::new();
    let mut data = Data {
        columns: ["stage", history::EPOCH, history::DEV_ACCURACY]
            .map(str::to_owned)
            .to_vec(),
        ..Data::default()
    };
    let (mut source, mut first) = (String::new(), None);
    for (at, step, output, table) in outputs(store, recorded, "history") {
        let read = [
            columns::numbers(&table, history::EPOCH),
            columns::numbers(&table, history::DEV_ACCURACY),
        ];
        let [Some(epochs), Some(accuracies)] = read else {
            continue;
        };
        // Of a training that began anew, the attempt that was accepted: the last.
        let attempts = columns::numbers(&table, "attempt").unwrap_or_default();
        let last = attempts.iter().flatten().copied().fold(0.0, f64::max);
        let points = epochs.into_iter().zip(accuracies).enumerate();
        let points = points.filter(|(row, _)| {
            let attempt = attempts.get(*row).copied().flatten();
            attempt.is_none_or(|attempt| attempt == last)
        });
        let points: Vec<(f64, f64)> = points.filter_map(|(_, (x, y))| Some((x?, y?))).collect();
        if points.len() < 2 || series.len() == draw::COLOURS.len() {
            continue;
        }
        let rows = points
            .iter()
            .map(|(x, y)| vec![step.label.clone(), columns::short(*x), columns::short(*y)]);
        data.rows.extend(rows);
        first = first.or(Some(at));
        if source.is_empty() {
            source = step.source(&step.outputs()[output]);
        }
        let name = without_seed(&step.label);
        match series
            .iter()
            .position(|one: &Series<Vec<_>>| one.name == name)
        {
            Some(known) => series[known].values.extend(points),
            None => series.push(Series {
                name,
                values: points,
            }),
        }
    }
    let mut bands = vec![draw::Band::new(); series.len()];
    for (one, band) in series.iter_mut().zip(&mut bands) {
        if let Some((line, around)) = bands::averaged(&one.values) {
            (one.values, *band) = (line, around);
        }
    }
    let note = match bands.iter().any(|band| !band.is_empty()) {
        true => bands::NOTE.to_owned(),
        false => String::new(),
    };
    data.total = data.rows.len();
    let axes = Axes {
        x: "epoch",
        y: "accuracy on dev",
    };
    let drawing = draw::plane_with_bands(&axes, &series, &bands, Mark::Line)?;
    Some(Figure {
        title: "Learning curves".to_owned(),
        note,
        drawings: vec![drawing],
        pictures: Vec::new(),
        legend: series
            .iter()
            .enumerate()
            .map(|(s, one)| (one.name.clone(), draw::colour(s)))
            .collect(),
        paper: false,
        source,
        step: first,
        data,
    })
}

/// The name of an instance without its seed: what is trained again with another is one curve.
fn without_seed(label: &str) -> String {
    let (name, others) = (label.split('[').next().unwrap_or(label), axes(label));
    let others = others.iter().filter(|(axis, _)| *axis != "seed");
    let others: Vec<String> = others
        .map(|(axis, value)| format!("{axis}={value}"))
        .collect();
    match others.is_empty() {
        true => name.to_owned(),
        false => format!("{name}[{}]", others.join(",")),
    }
}

/// Of the successes of an attack, if they differ at all.
fn words_changed(at: usize, step: &Step, output: usize, table: &RecordBatch) -> Option<Figure> {
    let words = columns::numbers(table, example_columns::WORDS_CHANGED)?;
    let success = columns::flags(table, example_columns::SUCCESS)?;
    let changed = words.into_iter().zip(success);
    let changed = changed.filter_map(|(words, success)| words.filter(|_| success));
    let changed: Vec<(f64, usize)> = changed.map(|words| (words, 0)).collect();
    if changed.iter().all(|(words, _)| *words == changed[0].0) {
        return None;
    }
    let (names, counts) = super::make::count(&changed, 1);
    let data = Data {
        columns: [example_columns::WORDS_CHANGED, "successes"]
            .map(str::to_owned)
            .to_vec(),
        rows: names
            .iter()
            .zip(&counts[0])
            .map(|(name, n)| vec![name.clone(), n.to_string()])
            .collect(),
        total: names.len(),
    };
    let values = counts[0].iter().map(|n| Some(*n as f64)).collect();
    let series = [Series {
        name: String::new(),
        values,
    }];
    let axes = Axes {
        x: "words changed",
        y: "successes",
    };
    Some(Figure {
        title: format!("{}: words changed in successful attacks", step.label),
        note: match changed.len() {
            1 => "1 success.".to_owned(),
            n => format!("{n} successes."),
        },
        drawings: vec![draw::bars(&axes, &names, &series, &[], &[])?],
        pictures: Vec::new(),
        legend: Vec::new(),
        paper: false,
        source: step.source(&step.outputs()[output]),
        step: Some(at),
        data,
    })
}

/// Before and after each attack, from their summaries.
fn accuracies(store: &Store, recorded: &Recorded) -> Option<Figure> {
    let mut names = Vec::new();
    let mut values: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    let mut intervals = vec![Vec::new(), Vec::new()];
    let (mut source, mut first) = (String::new(), None);
    for (at, step, output, table) in outputs(store, recorded, "summary") {
        let read = |name: &str| columns::numbers(&table, name).and_then(|list| *list.first()?);
        let (Some(before), Some(after)) = (
            read(summary::ACCURACY_BEFORE),
            read(summary::ACCURACY_AFTER),
        ) else {
            continue;
        };
        names.push(step.label.clone());
        let items = read(summary::ITEMS).map_or(0, |items| items as u64);
        let ends = |share: f64| wilson(share, items).map(|at| (at.low, at.high));
        intervals[0].push(ends(before));
        intervals[1].push(ends(after));
        values.entry("after").or_default().push(Some(after));
        values.entry("before").or_default().push(Some(before));
        first = first.or(Some(at));
        if source.is_empty() {
            source = step.source(&step.outputs()[output]);
        }
    }
    let series = ["before", "after"].map(|name| Series {
        name: name.to_owned(),
        values: values.get(name).cloned().unwrap_or_default(),
    });
    let shown = |name: &str, n: usize| values[name][n].map(columns::short).unwrap_or_default();
    let rows =
        (0..names.len()).map(|n| vec![names[n].clone(), shown("before", n), shown("after", n)]);
    Some(Figure {
        title: "Accuracy before and after each attack".to_owned(),
        note: format!("Error bars are 95% intervals by {}.", Method::Wilson.name()),
        drawings: vec![draw::bars(
            &Axes {
                x: "attack",
                y: "accuracy",
            },
            &names,
            &series,
            &[],
            &intervals,
        )?],
        pictures: Vec::new(),
        legend: legend(&series),
        paper: false,
        source,
        step: first,
        data: Data {
            columns: ["stage", "before", "after"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            total: names.len(),
        },
    })
}
