//! Old names of parameters, inputs and values, which are accepted for one version with a warning. Everything
//! after this sees the new names alone, so both spellings give one key.

use stages::{Renamed, Stage};
use store::Value;

use super::tree::{Entry, Raw, Table};
use crate::diagnostic::{Diagnostic, Span};

/// What came of the old names in a stage's table.
#[derive(Default)]
pub struct Outdated {
    /// Names that have been replaced by new ones.
    pub warnings: Vec<Diagnostic>,
    /// Names that are given in both spellings.
    pub problems: Vec<Diagnostic>,
}

/// Replaces the old names in a stage's table.
pub fn replace(kind: &dyn Stage, table: &mut Table, outdated: &mut Outdated) {
    for renamed in kind.renamed() {
        match *renamed {
            Renamed::Param { old, new } => key(table, old, new, "parameter", outdated),
            Renamed::Input { old, new } => {
                let inputs = table.entries.iter_mut().find(|entry| entry.key == "inputs");
                if let Some(Raw::Table(inputs)) = inputs.map(|entry| &mut entry.node.raw) {
                    key(inputs, old, new, "input", outdated);
                }
            }
            Renamed::Value { param, old, new } => value(table, param, old, new, outdated),
        }
    }
}

/// A key that a point or a choice sets, under its present name and with its present value; none if it is not an old
/// one.
pub fn current(kind: &dyn Stage, entry: &Entry) -> Option<Entry> {
    kind.renamed().iter().find_map(|renamed| {
        let key = |new: String| Entry {
            key: new,
            ..entry.clone()
        };
        match *renamed {
            Renamed::Param { old, new } => (entry.key == old).then(|| key(new.to_owned())),
            Renamed::Input { old, new } => {
                let port = entry.key.strip_prefix("inputs.")?;
                (port == old).then(|| key(format!("inputs.{new}")))
            }
            Renamed::Value { param, old, new } => {
                let is_old = entry.key == param && entry.node.as_text() == Some(old);
                let mut entry = is_old.then(|| entry.clone())?;
                entry.node.raw = Raw::Scalar(Value::Text(new.to_owned()));
                Some(entry)
            }
        }
    })
}

/// Warns of the old names that points and choices use for a stage.
pub fn warn<'a>(
    kind: &dyn Stage,
    entries: impl Iterator<Item = &'a Entry>,
    outdated: &mut Outdated,
) {
    for entry in entries {
        let Some(now) = current(kind, entry) else {
            continue;
        };
        let (message, new) = match now.key == entry.key {
            true => (
                format!("this value of `{}` has a new name", entry.key),
                now.node.as_text().unwrap_or_default().to_owned(),
            ),
            false => (
                format!("`{}` is now called `{}`", entry.key, now.key),
                now.key.clone(),
            ),
        };
        outdated
            .warnings
            .push(warning(message, entry.key_span, &new));
    }
}

fn key(table: &mut Table, old: &str, new: &str, what: &str, outdated: &mut Outdated) {
    let current = table.get(new).map(|entry| entry.key_span);
    let Some(entry) = table.entries.iter_mut().find(|entry| entry.key == old) else {
        return;
    };
    if let Some(span) = current {
        let message = format!("both the {what} `{new}` and its old name `{old}` are given");
        let problem = Diagnostic::new(message)
            .at(entry.key_span, "remove this one")
            .at(span, "");
        outdated.problems.push(problem);
        return;
    }
    entry.key = new.to_owned();
    let message = format!("the {what} `{old}` is now called `{new}`");
    outdated
        .warnings
        .push(warning(message, entry.key_span, new));
}

fn value(table: &mut Table, param: &str, old: &str, new: &str, outdated: &mut Outdated) {
    let entry = table.entries.iter_mut().find(|entry| entry.key == param);
    let Some(Entry { node, .. }) = entry.filter(|entry| entry.node.as_text() == Some(old)) else {
        return;
    };
    node.raw = Raw::Scalar(Value::Text(new.to_owned()));
    let message = format!("`{param} = \"{old}\"` is now written `{param} = \"{new}\"`");
    let warning = warning(message, node.span, &format!("`\"{new}\"`"));
    outdated.warnings.push(warning);
}

fn warning(message: String, span: Span, new: &str) -> Diagnostic {
    Diagnostic::warning(message)
        .at(span, "old name")
        .help(format!(
            "use {new} instead: the old name will be an error in the next version (keys and results do not change)"
        ))
}
