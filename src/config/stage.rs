//! One `[stage.NAME]`: its kind, wiring and raw parameters.

use stages::{Role, Stage};
use store::Value;

use super::axis::{Axis, Dotted};
use super::entries::{RESERVED, bad_name, is_name, unknown_key, wrong_type};
use super::exclusion::{self, Exclusion};
use super::input::{Input, Reference, inputs_of, named_by_params, reference_of};
use super::params::mentions;
use super::renamed::{self, Outdated};
use super::resources::{self, Resources};
use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// A stage as declared, before its axes multiply it.
pub struct StageDecl {
    /// Its name.
    pub name: String,
    /// Where the name is written.
    pub span: Span,
    /// Its kind; of a stage that picks, the kind of what it picks from.
    pub kind: &'static dyn Stage,
    /// Whether it only picks instances of another stage for its readers, and is never executed.
    pub picks: bool,
    /// What each input port reads, as written.
    pub inputs: Vec<Input>,
    /// Axes that it collects.
    pub over: Over,
    /// How it picks one instance of its inputs.
    pub select: Option<Select>,
    /// Axes whose points set keys of it.
    pub with: Vec<(usize, Span)>,
    /// Instances that it does not have.
    pub except: Vec<Exclusion>,
    /// What it takes of the machine while it runs.
    pub resources: Resources,
    /// Its own seed, as written.
    pub seed: Option<Node>,
    /// Its parameters, as written.
    pub params: Vec<Entry>,
    /// What points of axes that it does not name change of it, and what a choice changes.
    pub changes: Vec<Change>,
    /// Axes that decide its keys: mentioned, taken by `with`, or with changes of it.
    pub axes: Vec<usize>,
    /// Every stage that an instance of it may read.
    pub reads: Vec<Read>,
}

/// A key that is changed from outside: by a point of an axis, or everywhere.
#[derive(Clone, Debug)]
pub struct Change {
    /// The axis and the position of its point; none for a choice, which holds everywhere.
    pub point: Option<(usize, usize)>,
    /// The key with its value.
    pub entry: Entry,
}

/// A stage that is read, and where that is written.
#[derive(Clone, Debug)]
pub struct Read {
    /// The stage's position.
    pub stage: usize,
    /// The port that reads it; none for the metric of `select`.
    pub port: Option<String>,
    /// Where it is named.
    pub span: Span,
}

/// Axes that a stage collects.
#[derive(Clone, Debug)]
pub enum Over {
    /// These, with the place of each.
    Listed(Vec<(usize, Span)>),
    /// All axes of what it reads, because it wired itself; those of ablations multiply it.
    Rest,
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

impl StageDecl {
    /// The axes that it lists in `over`, with the place of each.
    pub fn over_listed(&self) -> &[(usize, Span)] {
        match &self.over {
            Over::Listed(axes) => axes,
            Over::Rest => &[],
        }
    }
}

/// Checks one stage's table.
pub fn check(
    entry: Entry,
    axes: &[Axis],
    stages: &Table,
    chosen: &[Dotted],
    outdated: &mut Outdated,
) -> Result<StageDecl, Vec<Diagnostic>> {
    if !is_name(&entry.key) || RESERVED.contains(&entry.key.as_str()) {
        return Err(vec![bad_name("a stage", &entry)]);
    }
    let Raw::Table(mut table) = entry.node.raw else {
        return Err(vec![wrong_type(&entry, "a table: [stage.NAME]")]);
    };
    let mut problems = Vec::new();
    let picked = table.take("pick");
    if let (Some(pick), Some(kind)) = (&picked, table.get("kind")) {
        return Err(vec![
            Diagnostic::new(format!("`{}` has both `pick` and `kind`", entry.key))
                .at(pick.key_span, "picks instances, and is never executed")
                .at(kind.key_span, "is executed"),
        ]);
    }
    let kind = match &picked {
        Some(pick) => picked_kind(pick, stages),
        None => kind(&mut table, &entry.key, entry.key_span),
    };
    let kind = kind.map_err(|problem| vec![problem])?;
    renamed::replace(kind, &mut table, outdated);

    let mut inputs = match table.take("inputs") {
        Some(entry) => inputs_of(entry, &mut problems),
        None => Vec::new(),
    };
    let wired = named_by_params(kind, &table.entries, &inputs, stages, &mut problems);
    let over = match table.take("over") {
        Some(entry) => Over::Listed(axis_list(&entry, axes, &mut problems)),
        None if !wired.is_empty() && table.get("select").is_none() => Over::Rest,
        None => Over::Listed(Vec::new()),
    };
    inputs.extend(wired);
    let select = table
        .take("select")
        .and_then(|entry| select_of(entry, axes, &mut problems));
    let with = table.take("with");
    let with = with.map_or(Vec::new(), |entry| axis_list(&entry, axes, &mut problems));
    let except = table.take("except");
    let except = except.map_or(Vec::new(), |entry| {
        exclusion::read(&entry, axes, &mut problems)
    });
    let resources = table.take("resources");
    let resources = resources.map_or(Resources::default(), |entry| {
        resources::read(entry, &mut problems)
    });
    let seed = table.take("seed").map(|entry| entry.node);
    if let Some(pick) = &picked {
        inputs = pick_only(&entry.key, pick, &table, select.is_some(), &mut problems);
    }
    let mut decl = StageDecl {
        name: entry.key,
        span: entry.key_span,
        kind,
        picks: picked.is_some(),
        inputs,
        over,
        select,
        with,
        except,
        resources,
        seed,
        params: table.entries,
        changes: Vec::new(),
        axes: Vec::new(),
        reads: Vec::new(),
    };
    take_changes(&mut decl, axes, chosen);
    let points = decl.with.iter().flat_map(|(axis, _)| &axes[*axis].points);
    let own = points.flatten().flat_map(|point| &point.own);
    let changed = decl.changes.iter().map(|change| &change.entry);
    renamed::warn(decl.kind, own.chain(changed), outdated);
    collect_axes(&mut decl, axes, &mut problems);
    contradictions(&decl, axes, &mut problems);
    match problems.is_empty() {
        true => Ok(decl),
        false => Err(problems),
    }
}

/// What the points of axes, and then the choices that are made, say of this stage.
fn take_changes(decl: &mut StageDecl, axes: &[Axis], chosen: &[Dotted]) {
    for (n, axis) in axes.iter().enumerate() {
        for (at, point) in axis.points.iter().flatten().enumerate() {
            let ours = point.dotted.iter().filter(|d| d.stage == decl.name);
            decl.changes.extend(ours.map(|dotted| Change {
                point: Some((n, at)),
                entry: dotted.entry.clone(),
            }));
        }
    }
    let ours = chosen.iter().filter(|dotted| dotted.stage == decl.name);
    decl.changes.extend(ours.map(|dotted| Change {
        point: None,
        entry: dotted.entry.clone(),
    }));
}

/// Notes the axes that decide the stage's keys.
fn collect_axes(decl: &mut StageDecl, axes: &[Axis], problems: &mut Vec<Diagnostic>) {
    let mut mentioned = Vec::new();
    let inputs = decl.inputs.iter().map(|input| &input.node);
    let own = decl.params.iter().map(|entry| &entry.node);
    let changed = decl.changes.iter().map(|change| &change.entry.node);
    let mut nodes: Vec<&Node> = own.chain(&decl.seed).chain(inputs).chain(changed).collect();
    for (axis, span) in &decl.with {
        match &axes[*axis].points {
            Some(points) => {
                let entries = points.iter().flat_map(|point| &point.own);
                nodes.extend(entries.map(|entry| &entry.node));
            }
            None => problems.push(
                Diagnostic::new(format!("axis `{}` has no named points", axes[*axis].name))
                    .at(*span, "`with` takes the keys that a point sets")
                    .help(format!(
                        "mention its value as ${{{0}}}, or write it as [axes.{0}] with NAME = {{ param = value }}",
                        axes[*axis].name
                    )),
            ),
        }
    }
    for node in nodes {
        mentions(node, axes, &mut mentioned, problems);
    }
    mentioned.extend(decl.with.iter().map(|(axis, _)| *axis));
    let points = decl.changes.iter().filter_map(|change| change.point);
    mentioned.extend(points.map(|(axis, _)| axis));
    mentioned.sort_unstable();
    mentioned.dedup();
    decl.axes = mentioned;
}

/// Keys that contradict each other.
fn contradictions(decl: &StageDecl, axes: &[Axis], problems: &mut Vec<Diagnostic>) {
    let name = &decl.name;
    if let (true, Some(change)) = (decl.picks, decl.changes.first()) {
        let picked = decl.inputs.first().and_then(|input| input.node.as_text());
        let picked = picked.unwrap_or("the stage that it picks from");
        problems.push(
            Diagnostic::new(format!("`{name}` only picks, and has no parameters"))
                .at(change.entry.key_span, "")
                .help(format!("change `{picked}`")),
        );
    }
    if let (Some(select), Some((_, span))) = (&decl.select, decl.over_listed().first()) {
        problems.push(
            Diagnostic::new(format!("`{name}` has both `over` and `select`"))
                .at(select.span, "picks one instance")
                .at(*span, "collects instances")
                .help("make them two stages, one reading the other"),
        );
    }
    let selected = decl.select.iter().flat_map(|select| &select.over);
    for (axis, span) in decl.over_listed().iter().chain(selected) {
        let axis_name = &axes[*axis].name;
        if decl.axes.contains(axis) {
            problems.push(
                Diagnostic::new(format!(
                    "`{name}` mentions ${{{axis_name}}} and collects it too"
                ))
                .at(
                    *span,
                    "a stage is either multiplied by an axis or collects it",
                ),
            );
        }
        if axes[*axis].is_ablation() && decl.kind.role() == Role::Results {
            problems.push(
                Diagnostic::new(format!("`{name}` collects the ablation `{axis_name}`"))
                    .at(*span, "a number would mix its variants")
                    .help(format!(
                        "remove it: `{name}` is computed for each variant, and `ablate ablation` compares them"
                    )),
            );
        }
    }
    twice_set(decl, axes, problems);
    overridden_settings(decl, axes, problems);
}

/// A `--set` whose value no instance has, because every point of an axis sets the key.
fn overridden_settings(decl: &StageDecl, axes: &[Axis], problems: &mut Vec<Diagnostic>) {
    // The file is the first source; every `--set` is a separate one.
    let given = decl
        .params
        .iter()
        .filter(|entry| entry.key_span.source != 0);
    for entry in given {
        let overrides = |(axis, _): &&(usize, Span)| {
            let mut points = axes[*axis].points.iter().flatten();
            points.all(|point| point.own.iter().any(|own| own.key == entry.key))
        };
        if let Some((axis, _)) = decl.with.iter().find(overrides) {
            let axis = &axes[*axis].name;
            let key = &entry.key;
            problems.push(
                Diagnostic::new(format!("--set {}.{key} would have no effect", decl.name))
                    .at(
                        entry.node.span,
                        format!("every point of axis `{axis}` sets `{key}`"),
                    )
                    .help(format!(
                        "set it in a point: --set axes.{axis}.POINT.{key}=VALUE"
                    )),
            );
        }
    }
}

/// Two axes that set one key of the stage.
fn twice_set(decl: &StageDecl, axes: &[Axis], problems: &mut Vec<Diagnostic>) {
    let points = |axis: usize| axes[axis].points.iter().flatten();
    let with = decl.with.iter().flat_map(|(axis, _)| {
        let own = points(*axis).flat_map(|point| &point.own);
        own.map(move |entry| (*axis, entry))
    });
    let with: Vec<(usize, &Entry)> = with.collect();
    let changes = decl.changes.iter();
    let changes = changes.filter_map(|change| Some((change.point?.0, &change.entry)));
    let changes: Vec<(usize, &Entry)> = changes.collect();
    for list in [with, changes] {
        for (n, (axis, entry)) in list.iter().enumerate() {
            let other = list[..n]
                .iter()
                .find(|(other, known)| other != axis && known.key == entry.key);
            if let Some((other, known)) = other {
                let (a, b) = (&axes[*other].name, &axes[*axis].name);
                problems.push(
                    Diagnostic::new(format!(
                        "axes `{a}` and `{b}` both set `{}` of `{}`",
                        entry.key, decl.name
                    ))
                    .at(entry.key_span, format!("by `{b}`"))
                    .at(known.key_span, format!("by `{a}`")),
                );
                return;
            }
        }
    }
}

/// The kind of the stage that is picked from, through others that pick.
fn picked_kind(pick: &Entry, stages: &Table) -> Result<&'static dyn Stage, Diagnostic> {
    let mut at = pick.clone();
    for _ in 0..=stages.entries.len() {
        let Some(name) = at.node.as_text() else {
            return Err(wrong_type(&at, "the name of a stage"));
        };
        let Some(Raw::Table(table)) = stages.get(name).map(|entry| &entry.node.raw) else {
            let known = stages.entries.iter().map(|entry| entry.key.as_str());
            let hint = nearest(name, known).unwrap_or_default();
            return Err(Diagnostic::new(format!("no stage `{name}`")).at(at.node.span, hint));
        };
        match table.get("pick") {
            Some(next) => at = next.clone(),
            None => {
                let kind = table.get("kind").and_then(|kind| kind.node.as_text());
                let kind = kind.and_then(stages::find);
                // A wrong kind is reported with its own stage.
                return Ok(kind.unwrap_or(stages::STAGES[0]));
            }
        }
    }
    Err(Diagnostic::new("stages pick from each other").at(pick.node.span, ""))
}

/// A stage that picks has nothing but `pick`, `select` and `except`.
fn pick_only(
    name: &str,
    pick: &Entry,
    rest: &Table,
    selects: bool,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Input> {
    if !selects {
        let select = "select = { over = [\"axis\"], metric = \"stage.model\", column = \"dev_accuracy\", best = \"max\" }";
        problems.push(
            Diagnostic::new(format!("`{name}` picks, but does not say how"))
                .at(pick.key_span, "")
                .help(select),
        );
    }
    for entry in &rest.entries {
        problems.push(unknown_key(
            entry,
            "in a stage that picks",
            ["pick", "select", "except", "like"],
        ));
    }
    let entry = Entry {
        key: PICKED.to_owned(),
        ..pick.clone()
    };
    match reference_of(&entry) {
        Ok(input) => vec![input],
        Err(problem) => {
            problems.push(problem);
            Vec::new()
        }
    }
}

/// The port of a stage that picks.
pub const PICKED: &str = "pick";

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
    if name == "external-attack" {
        // The name that people look for beside `external-model`.
        return Err(Diagnostic::new(format!("no stage kind `{name}`"))
            .at(entry.node.span, "")
            .help("an attack of your own is one of the attacks: kind = \"attack\", attack = \"external\""));
    }
    stages::find(name).ok_or_else(|| {
        Diagnostic::new(format!("no stage kind `{name}`"))
            .at(entry.node.span, nearest(name, kinds()).unwrap_or_default())
            .help(list())
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

fn metric_of(entry: &Entry) -> Result<Reference, Diagnostic> {
    let Some(text) = entry.node.as_text() else {
        return Err(wrong_type(entry, "a string: \"stage\" or \"stage.output\""));
    };
    if text.contains("${") {
        return Err(Diagnostic::new("an axis cannot choose the metric's stage")
            .at(entry.node.span, "name one stage"));
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
        metric_of(&entry)
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
