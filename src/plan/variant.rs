//! What a stage is at one point of the axes that decide its keys: checked parameters, seed, files, ports and
//! what its inputs name. Shared by instances that differ in inherited axes.

use std::sync::Arc;

use stages::{Inputs, Ports};
use store::{Params, Value};

use super::files::{Declared, Hasher};
use crate::config::{
    Bindings, Effective, Input, Pipeline, Reference, StageDecl, check_params, fill, reference,
};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// A stage at one point of its own axes.
pub struct Variant {
    /// Checked parameters.
    pub params: Arc<Params>,
    /// The seed, if it draws random numbers.
    pub seed: Option<u64>,
    /// Declared files, and what its program runs on.
    pub declared: Declared,
    /// What it reads and makes.
    pub ports: Ports,
    /// The names of its outputs.
    pub outputs: Arc<Vec<String>>,
    /// What each port reads.
    pub inputs: Vec<(Input, Reference)>,
    /// Its keys as they are written, for messages.
    pub written: Effective,
}

impl Variant {
    /// Where a parameter is written.
    pub fn param_span(&self, param: &str) -> Option<Span> {
        let entry = self.written.params.iter().find(|entry| entry.key == param);
        entry.map(|entry| entry.node.span)
    }

    /// Where an input is connected.
    pub fn input_span(&self, port: &str) -> Option<Span> {
        let input = self.inputs.iter().find(|(input, _)| input.port == port);
        input.map(|(input, _)| input.node.span)
    }
}

/// Checks parameters, seed, files and inputs at one point of the stage's own axes.
pub fn variant(
    pipeline: &Pipeline,
    decl: &StageDecl,
    own: &[usize],
    hasher: &Hasher,
) -> Result<Variant, Vec<Diagnostic>> {
    let written = decl.at(&pipeline.axes, own);
    let bindings = decl.bindings(&pipeline.axes, own);
    let params = match decl.picks {
        true => Params::new(),
        false => check_params(decl.kind, &written.params, &bindings, decl.span)?,
    };
    let declared = hasher
        .declared(&pipeline.dir, decl.kind, &params)
        .map_err(|unusable| {
            let entry = written.params.iter().find(|e| e.key == unusable.param);
            let span = entry.map_or(decl.span, |entry| entry.node.span);
            let problem = Diagnostic::new(unusable.message).at(span, "");
            vec![problem.help(unusable.help)]
        })?;
    let mut inputs = Vec::with_capacity(written.inputs.len());
    for input in &written.inputs {
        let found = reference(input, &bindings, &pipeline.names);
        let found = found.ok_or_else(|| {
            vec![
                Diagnostic::new(format!("input `{}` does not name a stage", input.port))
                    .at(input.node.span, "expected \"stage\" or \"stage.output\""),
            ]
        })?;
        inputs.push((input.clone(), found));
    }
    let ports = decl.kind.ports(&params);
    Ok(Variant {
        seed: seed(pipeline, decl, &written, &params, &bindings)
            .map_err(|problem| vec![problem])?,
        params: Arc::new(params),
        declared,
        outputs: Arc::new(ports.outputs.iter().map(|port| port.name.clone()).collect()),
        ports,
        inputs,
        written,
    })
}

fn seed(
    pipeline: &Pipeline,
    decl: &StageDecl,
    written: &Effective,
    params: &Params,
    bindings: &Bindings<'_>,
) -> Result<Option<u64>, Diagnostic> {
    let description = decl.kind.describe();
    let draws = description.seeded && !decl.picks && decl.kind.draws(params);
    match &written.seed {
        None => Ok(draws.then_some(pipeline.seed)),
        Some(node) if !description.seeded => Err(Diagnostic::new(format!(
            "`{}` draws no random numbers",
            description.kind
        ))
        .at(node.span, "remove `seed`")),
        Some(node) => match fill(node, bindings) {
            Value::Int(seed) if seed >= 0 => Ok(draws.then_some(seed.unsigned_abs())),
            other => Err(Diagnostic::new("`seed` must be a non-negative integer")
                .at(node.span, format!("this is {other}"))),
        },
    }
}

/// Refuses inputs that the kind does not have.
pub fn check_known_ports(decl: &StageDecl, variant: &Variant, problems: &mut Vec<Diagnostic>) {
    let kind = decl.kind.describe().kind;
    let Inputs::Named(named) = &variant.ports.inputs else {
        return;
    };
    let list = || match named.is_empty() {
        true => format!("`{kind}` reads nothing: remove `inputs`"),
        false => {
            let names: Vec<_> = named.iter().map(|port| port.name.as_str()).collect();
            format!("ports of `{kind}`: {}", names.join(", "))
        }
    };
    for (input, _) in &variant.inputs {
        if !named.iter().any(|port| port.name == input.port) {
            let names = named.iter().map(|port| port.name.as_str());
            let hint = nearest(&input.port, names).unwrap_or_default();
            problems.push(
                Diagnostic::new(format!("`{kind}` has no input `{}`", input.port))
                    .at(input.span, hint)
                    .help(list()),
            );
        }
    }
}
