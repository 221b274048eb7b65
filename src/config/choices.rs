//! `[choices]`: what a paper leaves open and this reproduction decided. Each is an alternative, by dotted keys:
//! `"STAGE.param"`, or `"axes.AXIS.POINT.param"` for one point of an axis.

use super::axis::Dotted;
use super::axis_overlay::{self, LeftOut, nested};
use super::entries::{as_table, bad_name, is_name};
use super::points::check_point;
use super::tree::{Entry, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// One alternative to what is written.
#[derive(Debug)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub changes: Vec<Dotted>,
}

/// In the place of a stage's name: the change is one of a point.
const AXES: &str = "axes";

/// The alternatives in the order of the file.
pub(super) fn check_choices(
    table: Table,
    (axes, left_out): (&Table, &LeftOut),
    stages: &Table,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Choice> {
    let mut choices = Vec::new();
    for entry in table.entries {
        if !is_name(&entry.key) {
            problems.push(bad_name("a choice", &entry));
            continue;
        }
        let (name, span) = (entry.key.clone(), entry.key_span);
        let (of_points, of_stages) = parted(as_table(entry, problems));
        let nothing = of_points.is_empty() && of_stages.entries.is_empty();
        let of_points: Vec<Dotted> = of_points
            .into_iter()
            .filter_map(|entry| {
                let found = of_point(entry, axes, left_out);
                found.map_err(|problem| problems.push(problem)).ok()
            })
            .collect();
        let point = check_point(of_stages, stages, problems);
        for own in &point.own {
            problems.push(
                Diagnostic::new(format!("choice `{name}` sets `{}` of no stage", own.key))
                    .at(own.key_span, "")
                    .help(format!("name the stage: \"STAGE.{}\"", own.key)),
            );
        }
        if nothing {
            problems.push(
                Diagnostic::new(format!("choice `{name}` changes nothing"))
                    .at(span, "")
                    .help("say what: { \"STAGE.param\" = value }"),
            );
        }
        choices.push(Choice {
            name,
            changes: point.dotted.into_iter().chain(of_points).collect(),
        });
    }
    choices
}

/// The changes of points, by `axes.AXIS.POINT.param`, and the other entries.
fn parted(table: Table) -> (Vec<Entry>, Table) {
    let (mut of_points, mut others) = (Vec::new(), Table::default());
    for entry in table.entries {
        match (entry.key.strip_prefix("axes."), &entry.node.raw) {
            (Some(_), _) => of_points.push(entry),
            // TOML reads the same without quotes as tables.
            (None, Raw::Table(inner)) if entry.key == AXES => flatten(AXES, inner, &mut of_points),
            _ => others.entries.push(entry),
        }
    }
    (of_points, others)
}

fn flatten(path: &str, table: &Table, into: &mut Vec<Entry>) {
    for entry in &table.entries {
        let key = format!("{path}.{}", entry.key);
        match &entry.node.raw {
            // What follows the point is its key, whose value may be a table.
            Raw::Table(inner) if path.split('.').count() < 3 => flatten(&key, inner, into),
            _ => into.push(Entry {
                key,
                ..entry.clone()
            }),
        }
    }
}

/// `axes.AXIS.POINT.param`, if the file has that point.
fn of_point(entry: Entry, axes: &Table, left_out: &LeftOut) -> Result<Dotted, Diagnostic> {
    let path: Vec<&str> = entry.key.splitn(4, '.').collect();
    let [_, axis, point, _] = path[..] else {
        return Err(
            Diagnostic::new(format!("`{}` is not a key of a point", entry.key))
                .at(entry.key_span, "")
                .help("a choice changes single keys of points: \"axes.AXIS.POINT.param\" = value"),
        );
    };
    if !matches!(axes.get(axis).map(|it| &it.node.raw), Some(Raw::Table(_))) {
        let named = |it: &&Entry| matches!(it.node.raw, Raw::Table(_));
        let names = axes.entries.iter().filter(named).map(|it| it.key.as_str());
        return Err(Diagnostic::new(format!("no axis `{axis}` of points"))
            .at(entry.key_span, nearest(axis, names).unwrap_or_default()));
    }
    let gone = left_out.get(axis).into_iter().flatten();
    let is_left_out = gone.into_iter().any(|it| it.as_text() == Some(point));
    let dotted = Dotted {
        stage: AXES.to_owned(),
        entry: Entry {
            key: path[1..].join("."),
            ..entry
        },
    };
    // Tried now, so that a choice that nobody takes is checked too. A profile may have left the point out.
    if !is_left_out {
        put(&dotted, &mut axes.clone())?;
    }
    Ok(dotted)
}

fn put(change: &Dotted, axes: &mut Table) -> Result<(), Diagnostic> {
    let path: Vec<&str> = change.entry.key.splitn(3, '.').collect();
    let entry = nested(&path, change.entry.key_span, change.entry.node.clone());
    axis_overlay::put(axes, entry, &mut LeftOut::default())
}

/// Changes the points that the choices say; what is left are changes of stages.
pub(super) fn change_points(
    changes: Vec<Dotted>,
    axes: &mut Table,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Dotted> {
    let mut of_stages = Vec::new();
    for change in changes {
        match change.stage == AXES {
            true => problems.extend(put(&change, axes).err()),
            false => of_stages.push(change),
        }
    }
    of_stages
}

/// Refuses a `--set` of a parameter that a choice sets too: the choice would win, and the setting have no effect.
pub(super) fn set_twice(
    settings: &[(String, String, Span)],
    chosen: &[Dotted],
    problems: &mut Vec<Diagnostic>,
) {
    for (stage, key, span) in settings {
        let same = |dotted: &&Dotted| dotted.stage == *stage && dotted.entry.key == *key;
        if let Some(dotted) = chosen.iter().find(same) {
            problems.push(
                Diagnostic::new(format!("--set {stage}.{key} would have no effect"))
                    .at(*span, "")
                    .at(dotted.entry.key_span, "this choice sets it too"),
            );
        }
    }
}

/// What the named choices change.
pub(super) fn chosen(names: &[String], choices: &[Choice]) -> Result<Vec<Dotted>, Diagnostic> {
    let mut changes: Vec<Dotted> = Vec::new();
    for name in names {
        let Some(choice) = choices.iter().find(|choice| choice.name == *name) else {
            let known = choices.iter().map(|choice| choice.name.as_str());
            let list = match choices.is_empty() {
                true => "the pipeline file has no [choices]".to_owned(),
                false => format!("choices: {}", known.clone().collect::<Vec<_>>().join(", ")),
            };
            return Err(Diagnostic::new(format!("no choice `{name}`"))
                .maybe_help(nearest(name, known))
                .help(list));
        };
        for change in &choice.changes {
            let same = |other: &&Dotted| {
                other.stage == change.stage && other.entry.key == change.entry.key
            };
            if let Some(other) = changes.iter().find(same) {
                let what = format!(
                    "choice `{name}` and another one both set `{}.{}`",
                    change.stage, change.entry.key
                );
                return Err(Diagnostic::new(what)
                    .at(change.entry.key_span, "")
                    .at(other.entry.key_span, "set here too")
                    .help("take one of them"));
            }
            changes.push(change.clone());
        }
    }
    Ok(changes)
}
