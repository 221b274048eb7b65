//! `[axes]`: lists of values of one type, each value once; or tables of named points.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;

use store::Value;

use super::axis::Axis;
use super::entries::{bad_name, is_name, wrong_type};
use super::points::check_points;
use super::stage::StageDecl;
use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// The axes in the order of the file.
pub(super) fn check_axes(
    table: Table,
    left_out: &HashMap<String, Vec<Value>>,
    stages: &Table,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Axis> {
    let mut axes = Vec::new();
    for entry in table.entries {
        if !is_name(&entry.key) {
            problems.push(bad_name("an axis", &entry));
            continue;
        }
        let left_out = left_out.get(&entry.key).cloned().unwrap_or_default();
        let axis = match &entry.node.raw {
            Raw::List(items) => list(&entry, items, problems),
            Raw::Table(points) => check_points(&entry, points, stages, problems),
            _ => {
                let expected = "a list of values, or a table of named points";
                problems.push(wrong_type(&entry, expected));
                continue;
            }
        };
        axes.push(Axis { left_out, ..axis });
    }
    axes
}

fn list(entry: &Entry, items: &[Node], problems: &mut Vec<Diagnostic>) -> Axis {
    if items.is_empty() {
        problems.push(
            Diagnostic::new(format!("axis `{}` has no values", entry.key)).at(
                entry.node.span,
                "an empty list leaves its stages without instances",
            ),
        );
    }
    let (values, value_spans) = check_values(&entry.key, items, problems);
    Axis {
        name: entry.key.clone(),
        values,
        value_spans,
        span: entry.key_span,
        points: None,
        column: entry.key.clone(),
        left_out: Vec::new(),
    }
}

/// The column of the axis along which executions are repeated.
const REPLICATES: &str = "seed";

/// `[pipeline] replicates = "fold"`: that axis is to results what `seed` is to others.
pub(super) fn set_replicates(
    axes: &mut [Axis],
    (name, span): &(String, Span),
    problems: &mut Vec<Diagnostic>,
) {
    if name != REPLICATES
        && let Some(seed) = axes.iter().find(|axis| axis.name == REPLICATES)
    {
        problems.push(
            Diagnostic::new(format!(
                "replicates cannot be `{name}`: the pipeline has an axis `{REPLICATES}`"
            ))
            .at(*span, "")
            .at(seed.span, "rename this axis"),
        );
        return;
    }
    let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
    let Some(axis) = axes.iter_mut().find(|axis| axis.name == *name) else {
        let hint = nearest(name, names.iter().map(String::as_str));
        problems
            .push(Diagnostic::new(format!("no axis `{name}`")).at(*span, hint.unwrap_or_default()));
        return;
    };
    let whole = |value: &Value| matches!(value, Value::Int(_));
    if !axis.values.iter().all(whole) {
        problems.push(
            Diagnostic::new(format!(
                "replicates are numbered: the values of `{name}` must be whole numbers"
            ))
            .at(axis.span, "")
            .at(*span, "named here"),
        );
        return;
    }
    axis.column = REPLICATES.to_owned();
}

/// The values of one axis: scalars of one type, each once.
fn check_values(
    axis: &str,
    items: &[Node],
    problems: &mut Vec<Diagnostic>,
) -> (Vec<Value>, Vec<Span>) {
    let floats = items
        .iter()
        .any(|item| matches!(item.raw, Raw::Scalar(Value::Float(_))));
    let (mut values, mut spans): (Vec<Value>, Vec<Span>) = Default::default();
    let mut listed: HashMap<String, (Value, Span)> = HashMap::new();
    for item in items {
        let Raw::Scalar(value) = &item.raw else {
            let what = format!("a value of axis `{axis}` is {}", item.type_name());
            let problem = Diagnostic::new(what);
            let problem = problem.at(item.span, "must be a string, number or boolean");
            problems.push(match &item.raw {
                Raw::Table(_) => problem.help(format!(
                    "give sets of parameters names: [axes.{axis}] with NAME = {{ param = value }}"
                )),
                _ => problem,
            });
            continue;
        };
        if let Some(first) = values.first()
            && !same_column(first, value)
        {
            let (first, other) = (first.type_name(), value.type_name());
            let problem = Diagnostic::new(format!("axis `{axis}` mixes {first} and {other}"));
            problems.push(problem.at(item.span, "all values of an axis have one type"));
            continue;
        }
        let first = listed.entry(one_value(value, floats));
        if let MapEntry::Occupied(first) = first {
            let (other, span) = first.get();
            problems.push(listed_twice(axis, (other, *span), (value, item.span)));
            continue;
        }
        first.or_insert_with(|| (value.clone(), item.span));
        values.push(value.clone());
        spans.push(item.span);
    }
    (values, spans)
}
/// The error for a value that an axis has already.
fn listed_twice(axis: &str, first: (&Value, Span), again: (&Value, Span)) -> Diagnostic {
    let ((other, there), (value, here)) = (first, again);
    if other.to_string() == value.to_string() {
        return Diagnostic::new(format!("axis `{axis}` lists {value} twice"))
            .at(here, "already listed");
    }
    let how = match (other, value) {
        (Value::Int(_), Value::Int(_)) => " in a column of floats",
        _ => "",
    };
    Diagnostic::new(format!(
        "axis `{axis}` lists {other} and {value}, which are the same number{how}"
    ))
    .at(here, "already listed")
    .at(there, "here")
}

/// The same text for values that mean the same. Numbers of an axis with a float are all floats once they
/// stand in a column.
fn one_value(value: &Value, floats: bool) -> String {
    let number = match value {
        Value::Int(int) if floats => *int as f64,
        Value::Float(float) => *float,
        other => return other.to_string(),
    };
    // 0 and -0 are equal, and so are all that are not numbers.
    Value::Float(number + 0.0).to_string()
}

/// Whether two values fit into one column.
fn same_column(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    (number(a) && number(b)) || a.type_name() == b.type_name()
}

/// Keys of points that no stage takes would have no effect.
pub(super) fn untaken_points(axes: &[Axis], decls: &[StageDecl], problems: &mut Vec<Diagnostic>) {
    for (n, axis) in axes.iter().enumerate() {
        if decls
            .iter()
            .any(|decl| decl.with.iter().any(|(taken, _)| *taken == n))
        {
            continue;
        }
        let mut own = axis.points.iter().flatten().flat_map(|point| &point.own);
        if let Some(entry) = own.next() {
            let (name, key) = (&axis.name, &entry.key);
            problems.push(
                Diagnostic::new(format!(
                    "`{key}` would have no effect: no stage takes axis `{name}` by `with`"
                ))
                .at(entry.key_span, "")
                .help(format!(
                    "name the stage that it changes: \"STAGE.{key}\"; or add with = [\"{name}\"] to a stage"
                )),
            );
        }
    }
}

/// An axis that no stage mentions is a mistake.
pub(super) fn unused_axes(axes: &[Axis], decls: &[StageDecl], problems: &mut Vec<Diagnostic>) {
    for (n, axis) in axes.iter().enumerate() {
        // One whose other points an overlay has left out may have nothing left to say.
        let left = axis.left_out.is_empty() || axis.points.is_none();
        if left && !decls.iter().any(|decl| decl.axes.contains(&n)) {
            problems.push(
                Diagnostic::new(format!("axis `{}` is never used", axis.name))
                    .at(axis.span, "")
                    .help(format!(
                        "mention it in a stage as ${{{}}}, or remove it",
                        axis.name
                    )),
            );
        }
    }
}
