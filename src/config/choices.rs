//! `[choices]`: what a paper leaves open and this reproduction decided. Each is an alternative, by dotted keys.

use super::axis::Dotted;
use super::entries::{as_table, bad_name, is_name};
use super::points::check_point;
use super::tree::Table;
use crate::diagnostic::{Diagnostic, Span, nearest};

/// One alternative to what is written.
#[derive(Debug)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub changes: Vec<Dotted>,
}

/// The alternatives in the order of the file.
pub(super) fn check_choices(
    table: Table,
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
        let point = check_point(as_table(entry, problems), stages, problems);
        for own in &point.own {
            problems.push(
                Diagnostic::new(format!("choice `{name}` sets `{}` of no stage", own.key))
                    .at(own.key_span, "")
                    .help(format!("name the stage: \"STAGE.{}\"", own.key)),
            );
        }
        if point.own.is_empty() && point.dotted.is_empty() {
            problems.push(
                Diagnostic::new(format!("choice `{name}` changes nothing"))
                    .at(span, "")
                    .help("say what: { \"STAGE.param\" = value }"),
            );
        }
        choices.push(Choice {
            name,
            changes: point.dotted,
        });
    }
    choices
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
    let mut changes = Vec::new();
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
        changes.extend(choice.changes.iter().cloned());
    }
    Ok(changes)
}
