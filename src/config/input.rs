//! What input ports read: `"stage"`, `"stage.output"`, or either with `${axis}` in it.

use std::collections::HashMap;

use stages::Stage;
use store::{Params, Value};

use super::entries::{bad_name, is_name, wrong_type};
use super::params::{Bindings, fill};
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
    problems: &mut Vec<Diagnostic>,
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
        if written.iter().chain(&inputs).any(known) {
            continue;
        }
        let Some(entry) = params.iter().find(|entry| entry.key == param) else {
            continue;
        };
        let span = place_of(&entry.node, &name).unwrap_or(entry.node.span);
        if stages.get(stage).is_none() {
            let names = stages.entries.iter().map(|entry| entry.key.as_str());
            let names = names.chain(written.iter().map(|input| input.port.as_str()));
            let message = format!("`{name}` is neither a stage nor an input of this one");
            let hint = nearest(stage, names).unwrap_or_default();
            problems.push(Diagnostic::new(message).at(span, hint));
            continue;
        }
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
