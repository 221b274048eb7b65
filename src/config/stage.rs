//! One `[stage.NAME]`: its kind, wiring and raw parameters.

use stages::Stage;
use store::Value;

use super::axis::Axis;
use super::entries::{RESERVED, bad_name, is_name, unknown_key, wrong_type};
use super::params::mentions;
use super::renamed::{self, Outdated};
use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// A stage as declared, before its axes multiply it.
pub struct StageDecl {
    /// Its name.
    pub name: String,
    /// Where the name is written.
    pub span: Span,
    /// Its kind.
    pub kind: &'static dyn Stage,
    /// What each input port reads.
    pub inputs: Vec<Input>,
    /// Axes that it collects, with the place of each.
    pub over: Vec<(usize, Span)>,
    /// How it picks one instance of its inputs.
    pub select: Option<Select>,
    /// Its own seed, as written.
    pub seed: Option<Node>,
    /// Its parameters, as written.
    pub params: Vec<Entry>,
    /// Axes that its own parameters or seed mention.
    pub axes: Vec<usize>,
}

/// An input port and what it reads.
#[derive(Debug)]
pub struct Input {
    /// The port's name.
    pub port: String,
    /// Where the port is written.
    pub span: Span,
    /// What it reads.
    pub from: Reference,
}

/// `"stage"` or `"stage.output"`.
#[derive(Debug)]
pub struct Reference {
    /// The stage's name.
    pub name: String,
    /// The stage's position, once resolved.
    pub stage: usize,
    /// The output, if one is named.
    pub output: Option<String>,
    /// Where this is written.
    pub span: Span,
}

/// Pick the instance with the best metric along some axes.
#[derive(Debug)]
pub struct Select {
    /// The axes along which instances compete.
    pub over: Vec<(usize, Span)>,
    /// The table of one row that holds the metric.
    pub metric: Reference,
    /// The metric's column.
    pub column: String,
    /// Which end is best.
    pub best: Best,
    /// Where `select` is written.
    pub span: Span,
}

/// Which end of a metric is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The largest value wins.
    Max,
    /// The smallest value wins.
    Min,
}

impl std::fmt::Debug for StageDecl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[stage.{}]", self.name)
    }
}

/// Checks one stage's table.
pub fn check(
    entry: Entry,
    axes: &[Axis],
    outdated: &mut Outdated,
) -> Result<StageDecl, Vec<Diagnostic>> {
    if !is_name(&entry.key) || RESERVED.contains(&entry.key.as_str()) {
        return Err(vec![bad_name("a stage", &entry)]);
    }
    let Raw::Table(mut table) = entry.node.raw else {
        return Err(vec![wrong_type(&entry, "a table: [stage.NAME]")]);
    };
    let mut problems = Vec::new();
    let kind = kind(&mut table, &entry.key, entry.key_span).map_err(|problem| vec![problem])?;
    renamed::replace(kind, &mut table, outdated);

    let inputs = table.take("inputs");
    let inputs = inputs.map_or(Vec::new(), |entry| inputs_of(entry, &mut problems));
    let over = table.take("over");
    let over = over.map_or(Vec::new(), |entry| axis_list(&entry, axes, &mut problems));
    let select = table
        .take("select")
        .and_then(|entry| select_of(entry, axes, &mut problems));
    let seed = table.take("seed").map(|entry| entry.node);

    let mut mentioned = Vec::new();
    for node in table.entries.iter().map(|entry| &entry.node).chain(&seed) {
        mentions(node, axes, &mut mentioned, &mut problems);
    }
    if let (Some(select), Some((_, span))) = (&select, over.first()) {
        problems.push(
            Diagnostic::new(format!("`{}` has both `over` and `select`", entry.key))
                .at(select.span, "picks one instance")
                .at(*span, "collects instances")
                .help("make them two stages, one reading the other"),
        );
    }
    let collected = over
        .iter()
        .chain(select.iter().flat_map(|select| &select.over));
    for (axis, span) in collected {
        if mentioned.contains(axis) {
            let name = &axes[*axis].name;
            problems.push(
                Diagnostic::new(format!(
                    "`{}` mentions ${{{name}}} and collects it too",
                    entry.key
                ))
                .at(
                    *span,
                    "a stage is either multiplied by an axis or collects it",
                ),
            );
        }
    }
    mentioned.sort_unstable();
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(StageDecl {
        name: entry.key,
        span: entry.key_span,
        kind,
        inputs,
        over,
        select,
        seed,
        params: table.entries,
        axes: mentioned,
    })
}

/// Turns stage names into positions.
pub fn resolve(decls: &mut [StageDecl], problems: &mut Vec<Diagnostic>) {
    let names: std::collections::HashMap<String, usize> = index(decls)
        .into_iter()
        .map(|(name, n)| (name.to_owned(), n))
        .collect();
    for decl in decls {
        let metric = decl.select.iter_mut().map(|select| &mut select.metric);
        let inputs = decl.inputs.iter_mut().map(|input| &mut input.from);
        for reference in inputs.chain(metric) {
            match names.get(&reference.name) {
                Some(stage) => reference.stage = *stage,
                None => {
                    let known = names.keys().map(String::as_str);
                    let hint = nearest(&reference.name, known).unwrap_or_default();
                    problems.push(
                        Diagnostic::new(format!("no stage `{}`", reference.name))
                            .at(reference.span, hint),
                    );
                }
            }
        }
    }
}

fn kind(table: &mut Table, stage: &str, span: Span) -> Result<&'static dyn Stage, Diagnostic> {
    let kinds = || stages::STAGES.iter().map(|kind| kind.describe().kind);
    let list = || format!("kinds: {}", kinds().collect::<Vec<_>>().join(", "));
    let Some(entry) = table.take("kind") else {
        return Err(Diagnostic::new(format!("stage `{stage}` has no kind"))
            .at(span, "")
            .help(list()));
    };
    let Some(name) = entry.node.as_text() else {
        return Err(wrong_type(&entry, "a string").help(list()));
    };
    stages::find(name).ok_or_else(|| {
        Diagnostic::new(format!("no stage kind `{name}`"))
            .at(entry.node.span, nearest(name, kinds()).unwrap_or_default())
            .help(list())
    })
}

fn inputs_of(entry: Entry, problems: &mut Vec<Diagnostic>) -> Vec<Input> {
    let Raw::Table(table) = entry.node.raw else {
        problems.push(wrong_type(&entry, "a table: { port = \"stage\" }"));
        return Vec::new();
    };
    let mut inputs = Vec::new();
    for entry in table.entries {
        if !is_name(&entry.key) {
            problems.push(bad_name("a port", &entry));
            continue;
        }
        match reference(&entry) {
            Ok(from) => inputs.push(Input {
                port: entry.key,
                span: entry.key_span,
                from,
            }),
            Err(problem) => problems.push(problem),
        }
    }
    inputs
}

fn reference(entry: &Entry) -> Result<Reference, Diagnostic> {
    let Some(text) = entry.node.as_text() else {
        return Err(wrong_type(entry, "a string: \"stage\" or \"stage.output\""));
    };
    if text.contains("${") {
        return Err(Diagnostic::new("an axis cannot choose which stage is read")
            .at(entry.node.span, "name one stage")
            .help("its readers inherit a stage's axes by themselves"));
    }
    let (name, output) = match text.split_once('.') {
        Some((name, output)) => (name, Some(output.to_owned())),
        None => (text, None),
    };
    Ok(Reference {
        name: name.to_owned(),
        stage: usize::MAX,
        output,
        span: entry.node.span,
    })
}

fn axis_list(entry: &Entry, axes: &[Axis], problems: &mut Vec<Diagnostic>) -> Vec<(usize, Span)> {
    let Raw::List(items) = &entry.node.raw else {
        problems.push(wrong_type(entry, "a list of axis names"));
        return Vec::new();
    };
    let mut found: Vec<(usize, Span)> = Vec::new();
    for item in items {
        let Some(name) = item.as_text() else {
            problems.push(
                Diagnostic::new(format!("`{}` must be a list of axis names", entry.key))
                    .at(item.span, format!("this is {}", item.type_name())),
            );
            continue;
        };
        match axes.iter().position(|axis| axis.name == name) {
            Some(axis) if found.iter().any(|(other, _)| *other == axis) => problems
                .push(Diagnostic::new(format!("axis `{name}` is listed twice")).at(item.span, "")),
            Some(axis) => found.push((axis, item.span)),
            None => {
                let names = axes.iter().map(|axis| axis.name.as_str());
                problems.push(
                    Diagnostic::new(format!("no axis `{name}`"))
                        .at(item.span, nearest(name, names).unwrap_or_default()),
                );
            }
        }
    }
    found.sort_unstable_by_key(|(axis, _)| *axis);
    found
}

fn select_of(entry: Entry, axes: &[Axis], problems: &mut Vec<Diagnostic>) -> Option<Select> {
    let form =
        "select = { over = [\"axis\"], metric = \"stage\", column = \"name\", best = \"max\" }";
    let before = problems.len();
    let span = entry.key_span;
    let Raw::Table(mut table) = entry.node.raw else {
        problems.push(wrong_type(&entry, "a table").help(form));
        return None;
    };
    let mut part = |key: &str, problems: &mut Vec<Diagnostic>| {
        let found = table.take(key);
        if found.is_none() {
            problems.push(
                Diagnostic::new(format!("`select` needs `{key}`"))
                    .at(span, "")
                    .help(form),
            );
        }
        found
    };
    let over = part("over", problems).map(|entry| axis_list(&entry, axes, problems));
    let metric = part("metric", problems).and_then(|entry| {
        reference(&entry)
            .map_err(|problem| problems.push(problem))
            .ok()
    });
    let column = part("column", problems).and_then(|entry| match &entry.node.raw {
        Raw::Scalar(Value::Text(column)) => Some(column.clone()),
        _ => {
            problems.push(wrong_type(&entry, "a string"));
            None
        }
    });
    let best = part("best", problems).and_then(|entry| match entry.node.as_text() {
        Some("max") => Some(Best::Max),
        Some("min") => Some(Best::Min),
        _ => {
            problems
                .push(Diagnostic::new("`best` must be \"max\" or \"min\"").at(entry.node.span, ""));
            None
        }
    });
    for entry in &table.entries {
        problems.push(unknown_key(
            entry,
            "in `select`",
            ["over", "metric", "column", "best"],
        ));
    }
    if let Some(over) = &over
        && over.is_empty()
        && problems.len() == before
    {
        problems.push(
            Diagnostic::new("`select` names no axis")
                .at(span, "")
                .help(form),
        );
    }
    if problems.len() > before {
        return None;
    }
    Some(Select {
        over: over?,
        metric: metric?,
        column: column?,
        best: best?,
        span,
    })
}

/// The position of each stage by name.
fn index(decls: &[StageDecl]) -> std::collections::HashMap<&str, usize> {
    decls
        .iter()
        .enumerate()
        .map(|(n, decl)| (decl.name.as_str(), n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::params::COMMON;

    #[test]
    fn no_kind_takes_a_common_key_as_parameter() {
        for kind in stages::STAGES {
            for param in kind.describe().params {
                assert!(
                    !COMMON.contains(&param.name),
                    "stages/{}: rename the parameter `{}`, every stage has that key already",
                    kind.describe().kind,
                    param.name
                );
            }
        }
    }
}
