//! What input ports read: `"stage"`, `"stage.output"`, or either with `${axis}` in it.

use std::collections::HashMap;

use stages::Stage;
use store::{Params, Value};

use super::axis::Axis;
use super::entries::{bad_name, is_name, wrong_type};
use super::params::{Bindings, fill, mentions};
use super::stage::{Read, StageDecl};
use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// An input port and what it reads, as written.
#[derive(Clone, Debug)]
pub struct Input {
    /// The port's name.
    pub port: String,
    /// Where the port is written.
    pub span: Span,
    /// The text of the reference, perhaps with axes in it.
    pub node: Node,
}

/// `"stage"` or `"stage.output"`.
#[derive(Clone, Debug)]
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

/// The table `inputs`.
pub(super) fn inputs_of(entry: Entry, problems: &mut Vec<Diagnostic>) -> Vec<Input> {
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
        match reference_of(&entry) {
            Ok(input) => inputs.push(input),
            Err(problem) => problems.push(problem),
        }
    }
    inputs
}

/// One port and the text of what it reads. Whether that names stages is found out when all are known.
pub(super) fn reference_of(entry: &Entry) -> Result<Input, Diagnostic> {
    match entry.node.as_text() {
        Some(_) => Ok(Input {
            port: entry.key.clone(),
            span: entry.key_span,
            node: entry.node.clone(),
        }),
        None => Err(wrong_type(entry, "a string: \"stage\" or \"stage.output\"")),
    }
}

/// Inputs that are not written, because parameters name the stages: each is a port of that name.
pub(super) fn named_by_params(
    kind: &dyn Stage,
    params: &[Entry],
    written: &[Input],
    stages: &Table,
) -> Vec<Input> {
    let filled: Params = params
        .iter()
        .map(|entry| (entry.key.clone(), fill(&entry.node, &Bindings::new())))
        .collect();
    let mut inputs: Vec<Input> = Vec::new();
    for (param, name) in kind.reads_by_name(&filled) {
        let known = |input: &Input| input.port == name;
        let stage = name
            .split_once('.')
            .map_or(name.as_str(), |(stage, _)| stage);
        if written.iter().chain(&inputs).any(known) || stages.get(stage).is_none() {
            continue;
        }
        let Some(entry) = params.iter().find(|entry| entry.key == param) else {
            continue;
        };
        let span = place_of(&entry.node, &name).unwrap_or(entry.node.span);
        inputs.push(Input {
            port: name.clone(),
            span,
            node: Node {
                raw: Raw::Scalar(Value::Text(name)),
                span,
            },
        });
    }
    inputs
}

/// Where a text stands within a value.
fn place_of(node: &Node, text: &str) -> Option<Span> {
    match &node.raw {
        Raw::Scalar(Value::Text(found)) if found == text => Some(node.span),
        Raw::Scalar(_) => None,
        Raw::List(items) => items.iter().find_map(|item| place_of(item, text)),
        Raw::Table(table) => {
            let mut entries = table.entries.iter();
            entries.find_map(|entry| place_of(&entry.node, text))
        }
    }
}

/// `stage` or `stage.output`, at a point of the axes that the text mentions.
pub fn reference(
    input: &Input,
    bindings: &Bindings<'_>,
    names: &HashMap<String, usize>,
) -> Option<Reference> {
    let Value::Text(text) = fill(&input.node, bindings) else {
        return None;
    };
    let (name, output) = match text.split_once('.') {
        Some((name, output)) => (name, Some(output.to_owned())),
        None => (text.as_str(), None),
    };
    Some(Reference {
        stage: *names.get(name)?,
        name: name.to_owned(),
        output,
        span: input.node.span,
    })
}

/// Turns stage names into positions, and notes what each stage may read.
pub fn resolve(decls: &mut [StageDecl], axes: &[Axis], problems: &mut Vec<Diagnostic>) {
    let names = positions(decls);
    for decl in decls {
        let mut reads: Vec<Read> = Vec::new();
        for input in all_inputs(decl, axes) {
            read_stages(&input, axes, &names, &mut reads, problems);
        }
        if let Some(select) = &mut decl.select {
            let metric = &mut select.metric;
            match names.get(&metric.name) {
                Some(stage) => {
                    metric.stage = *stage;
                    reads.push(Read {
                        stage: *stage,
                        port: None,
                        span: metric.span,
                    });
                }
                None => problems.push(no_stage(&metric.name, metric.span, &names)),
            }
        }
        decl.reads = reads;
    }
}

/// The position of each stage by name.
pub fn positions(decls: &[StageDecl]) -> HashMap<String, usize> {
    let named = decls.iter().enumerate();
    named.map(|(n, decl)| (decl.name.clone(), n)).collect()
}

/// Every input that some instance has: written, set by points, changed from outside.
fn all_inputs(decl: &StageDecl, axes: &[Axis]) -> Vec<Input> {
    let mut inputs = decl.inputs.clone();
    let points = decl.with.iter().flat_map(|(axis, _)| &axes[*axis].points);
    let own = points.flatten().flat_map(|point| &point.own);
    let changes = decl.changes.iter().map(|change| &change.entry);
    for entry in own.chain(changes) {
        if let Some(port) = entry.key.strip_prefix("inputs.")
            && entry.node.as_text().is_some()
        {
            inputs.push(Input {
                port: port.to_owned(),
                span: entry.key_span,
                node: entry.node.clone(),
            });
        }
    }
    inputs
}

/// The stages that an input names, at every point of the axes that it mentions.
fn read_stages(
    input: &Input,
    axes: &[Axis],
    names: &HashMap<String, usize>,
    reads: &mut Vec<Read>,
    problems: &mut Vec<Diagnostic>,
) {
    let mut mentioned = Vec::new();
    mentions(&input.node, axes, &mut mentioned, &mut Vec::new());
    let count: usize = mentioned
        .iter()
        .map(|axis| axes[*axis].values.len())
        .product();
    for n in 0..count {
        let mut rest = n;
        let mut bindings = Bindings::new();
        let mut last = None;
        for axis in &mentioned {
            let axis = &axes[*axis];
            let at = rest % axis.values.len();
            rest /= axis.values.len();
            bindings.insert(&axis.name, &axis.values[at]);
            last = Some((axis, at));
        }
        match reference(input, &bindings, names) {
            Some(found) => {
                let read = Read {
                    stage: found.stage,
                    port: Some(input.port.clone()),
                    span: found.span,
                };
                let known = |old: &Read| old.stage == read.stage && old.port == read.port;
                if !reads.iter().any(known) {
                    reads.push(read);
                }
            }
            None => {
                let value = fill(&input.node, &bindings);
                let text = value.as_text().map_or(value.to_string(), str::to_owned);
                let name = text.split('.').next().unwrap_or_default();
                problems.push(match last {
                    None => no_stage(name, input.node.span, names),
                    Some((axis, at)) => {
                        let hint = nearest(name, names.keys().map(String::as_str));
                        Diagnostic::new(format!(
                            "axis `{}` has the value {}, and there is no stage `{name}`",
                            axis.name, axis.values[at]
                        ))
                        .at(axis.value_spans[at], hint.unwrap_or_default())
                        .at(input.node.span, "each value names a stage here")
                    }
                });
                return;
            }
        }
    }
}

fn no_stage(name: &str, span: Span, names: &HashMap<String, usize>) -> Diagnostic {
    let hint = nearest(name, names.keys().map(String::as_str));
    Diagnostic::new(format!("no stage `{name}`")).at(span, hint.unwrap_or_default())
}
