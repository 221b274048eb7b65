//! From the texts of inputs to the stages that they name, at every point of the axes that they mention.

use std::collections::HashMap;

use super::axis::Axis;
use super::input::{Input, reference};
use super::params::{Bindings, fill, mentions};
use super::stage::{Read, StageDecl};
use crate::diagnostic::{Diagnostic, Span, nearest};

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
