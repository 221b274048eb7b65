//! What a profile or `--set` does to an axis: other values, fewer points, or single keys of a point.

use std::collections::HashMap;

use store::Value;

use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// The values of axes in the file that an overlay leaves out, by axis.
pub type LeftOut = HashMap<String, Vec<Value>>;

/// Puts an overlay's entry in the place of an axis. A list of names keeps those points; a table replaces single
/// keys of points.
pub fn put(axes: &mut Table, entry: Entry, left_out: &mut LeftOut) -> Result<(), Diagnostic> {
    let old = axes.entries.iter_mut().find(|old| old.key == entry.key);
    let Some(old) = old else {
        axes.put(entry);
        return Ok(());
    };
    let gone = left_out.entry(entry.key.clone()).or_default();
    match (&mut old.node.raw, entry.node.raw) {
        (Raw::Table(points), Raw::List(names)) => {
            let kept = keep(&entry.key, points, &names)?;
            let is_kept = |point: &Entry| kept.entries.iter().any(|k| k.key == point.key);
            let points = points.entries.iter().filter(|point| !is_kept(point));
            gone.extend(points.map(|point| Value::Text(point.key.clone())));
            old.node.raw = Raw::Table(kept);
        }
        (Raw::Table(points), Raw::Table(changes)) => {
            for change in changes.entries {
                change_point(&entry.key, points, change)?;
            }
        }
        (Raw::List(items), raw) => {
            let values = items.iter().filter_map(|item| match &item.raw {
                Raw::Scalar(value) => Some(value.clone()),
                _ => None,
            });
            gone.extend(values);
            *old = Entry {
                node: Node { raw, ..entry.node },
                ..entry
            };
        }
        (_, raw) => {
            *old = Entry {
                node: Node { raw, ..entry.node },
                ..entry
            };
        }
    }
    Ok(())
}

/// The named points, in the order of the names.
fn keep(axis: &str, points: &Table, names: &[Node]) -> Result<Table, Diagnostic> {
    let mut kept = Table::default();
    for name in names {
        let found = name.as_text().and_then(|text| points.get(text));
        match found {
            Some(point) if kept.get(&point.key).is_some() => {
                let message = format!("axis `{axis}` lists `{}` twice", point.key);
                return Err(Diagnostic::new(message).at(name.span, "already listed"));
            }
            Some(point) => kept.put(point.clone()),
            None => return Err(no_point(axis, points, name)),
        }
    }
    Ok(kept)
}

fn no_point(axis: &str, points: &Table, name: &Node) -> Diagnostic {
    let Some(text) = name.as_text() else {
        return Diagnostic::new(format!("axis `{axis}` has named points"))
            .at(name.span, format!("this is {}", name.type_name()))
            .help(listed(points));
    };
    let names = points.entries.iter().map(|point| point.key.as_str());
    Diagnostic::new(format!("axis `{axis}` has no point `{text}`"))
        .at(name.span, nearest(text, names).unwrap_or_default())
        .help(listed(points))
}

fn listed(points: &Table) -> String {
    let names: Vec<&str> = points.entries.iter().map(|p| p.key.as_str()).collect();
    format!("its points: {}", names.join(", "))
}

/// Replaces single keys of a point.
fn change_point(axis: &str, points: &mut Table, change: Entry) -> Result<(), Diagnostic> {
    let known = points.entries.iter().map(|point| point.key.as_str());
    let hint = nearest(&change.key, known).unwrap_or_default();
    let list = listed(points);
    let point = points.entries.iter_mut().find(|p| p.key == change.key);
    match (point.map(|point| &mut point.node.raw), change.node.raw) {
        (Some(Raw::Table(point)), Raw::Table(keys)) => {
            keys.entries.into_iter().for_each(|key| point.put(key));
            Ok(())
        }
        (None, _) => Err(Diagnostic::new(format!(
            "axis `{axis}` has no point `{}` to change",
            change.key
        ))
        .at(change.key_span, hint)
        .help(list)),
        _ => Err(
            Diagnostic::new(format!("point `{}` must be a table", change.key))
                .at(change.node.span, "write { param = value }"),
        ),
    }
}

/// `a.b.c = value` as tables within each other. `span`: where the keys are written.
pub(super) fn nested(path: &[&str], span: Span, node: Node) -> Entry {
    let mut path = path.iter().rev();
    let entry = |key: &str, node| Entry {
        key: key.to_owned(),
        key_span: span,
        node,
    };
    let last = entry(path.next().expect("a setting has a name"), node);
    path.fold(last, |inner, key| {
        let raw = Raw::Table(Table {
            entries: vec![inner],
        });
        entry(key, Node { raw, span })
    })
}
