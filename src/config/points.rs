//! `[axes.NAME]` with named points: each sets parameters of the stages that take the axis by `with`, or, by
//! dotted keys, of other stages.

use store::Value;

use super::axis::{Axis, Dotted, Point};
use super::entries::as_table;
use super::tree::{Entry, Raw, Table};
use crate::diagnostic::{Diagnostic, nearest};

/// An axis of points.
pub(super) fn check_points(
    entry: &Entry,
    table: &Table,
    stages: &Table,
    problems: &mut Vec<Diagnostic>,
) -> Axis {
    let mut axis = Axis {
        name: entry.key.clone(),
        values: Vec::new(),
        value_spans: Vec::new(),
        span: entry.key_span,
        points: None,
        column: entry.key.clone(),
        left_out: Vec::new(),
    };
    let mut points = Vec::new();
    for point in &table.entries {
        if !is_point(&point.key) {
            problems.push(
                Diagnostic::new(format!("`{}` cannot name a point of an axis", point.key))
                    .at(point.key_span, "")
                    .help("use letters, digits, `.`, `_`, `-` and `+`"),
            );
            continue;
        }
        axis.values.push(Value::Text(point.key.clone()));
        axis.value_spans.push(point.key_span);
        let keys = as_table(point.clone(), problems);
        points.push(check_point(keys, stages, problems));
    }
    if points.is_empty() {
        problems.push(
            Diagnostic::new(format!("axis `{}` has no points", entry.key))
                .at(entry.key_span, "")
                .help("name each: NAME = { param = value }"),
        );
    }
    axis.points = Some(points);
    one_base(&axis, problems);
    axis
}

/// The keys of a point: its own, and those of other stages.
pub(super) fn check_point(keys: Table, stages: &Table, problems: &mut Vec<Diagnostic>) -> Point {
    let mut point = Point::default();
    for entry in keys.entries {
        match (entry.key.split_once('.'), &entry.node.raw) {
            (Some(("inputs", _)), _) => point.own.push(entry),
            (Some((stage, key)), _) => match dotted(stage, key, &entry, stages) {
                Ok(dotted) => point.dotted.push(dotted),
                Err(problem) => problems.push(problem),
            },
            (None, Raw::Table(inputs)) if entry.key == "inputs" => {
                point.own.extend(inputs.entries.iter().map(|input| Entry {
                    key: format!("inputs.{}", input.key),
                    ..input.clone()
                }));
            }
            // TOML reads `lstm.units = 64` without quotes as a table.
            (None, Raw::Table(inner)) if stages.get(&entry.key).is_some() => {
                for inner in &inner.entries {
                    match dotted(&entry.key, &inner.key, inner, stages) {
                        Ok(dotted) => point.dotted.push(dotted),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            _ if FIXED.contains(&entry.key.as_str()) => problems.push(fixed(&entry, &entry.key)),
            _ => point.own.push(entry),
        }
    }
    point
}

/// Names of points are values of their axis: they stand in labels.
fn is_point(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// Keys that say what a stage is: a point cannot change them.
pub const FIXED: [&str; 8] = [
    "kind",
    "pick",
    "like",
    "with",
    "except",
    "over",
    "select",
    "resources",
];

fn fixed(entry: &Entry, key: &str) -> Diagnostic {
    Diagnostic::new(format!("a point cannot set `{key}`"))
        .at(entry.key_span, "")
        .help("points set parameters, `seed` and `inputs.PORT`")
}

/// `"stage.key" = value`. The parameter is checked with the stage.
fn dotted(stage: &str, key: &str, entry: &Entry, stages: &Table) -> Result<Dotted, Diagnostic> {
    if stages.get(stage).is_none() {
        let names = stages.entries.iter().map(|stage| stage.key.as_str());
        let hint = nearest(stage, names).unwrap_or_default();
        return Err(Diagnostic::new(format!("no stage `{stage}`")).at(entry.key_span, hint));
    }
    if key.is_empty() || FIXED.contains(&key) {
        return Err(fixed(entry, key));
    }
    Ok(Dotted {
        stage: stage.to_owned(),
        entry: Entry {
            key: key.to_owned(),
            ..entry.clone()
        },
    })
}

/// The points of an ablation are compared with the one that changes nothing.
fn one_base(axis: &Axis, problems: &mut Vec<Diagnostic>) {
    if !axis.is_ablation() {
        return;
    }
    let points = axis.points.iter().flatten().zip(&axis.value_spans);
    let empty = points.filter(|(point, _)| point.own.is_empty() && point.dotted.is_empty());
    let empty: Vec<_> = empty.map(|(_, span)| *span).collect();
    let name = &axis.name;
    match empty[..] {
        [_] => {}
        [] => problems.push(
            Diagnostic::new(format!(
                "axis `{name}` changes other stages, but has no base"
            ))
            .at(
                axis.span,
                "its variants are compared with a point that changes nothing",
            )
            .help("add one: base = {}"),
        ),
        [first, second, ..] => problems.push(
            Diagnostic::new(format!("axis `{name}` has more than one base"))
                .at(second, "changes nothing")
                .at(first, "changes nothing either")
                .help("keep one empty point: the variants are compared with it"),
        ),
    }
}
