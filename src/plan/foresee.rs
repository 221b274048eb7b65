//! What the pipeline file implies about every table before it is computed, stage by stage, and mismatches in it.
//! Knows nothing of kinds: they describe what they expect.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stages::{Blamed, Code, Expected, ExpectedInputs, Mismatch};
use store::Params;

use super::instance::{Feed, Source, Wire};
use crate::config::{Axis, StageDecl};
use crate::diagnostic::{Diagnostic, nearest};

type Outputs = Arc<[Arc<Expected>]>;

/// What is known of the outputs of the instances so far.
#[derive(Default)]
pub struct Foresight {
    of_instance: Vec<Outputs>,
    /// One of each: stages that differ in what decides nothing here share their outputs.
    known: HashMap<Vec<Expected>, Outputs>,
}

impl Foresight {
    /// Looks at the next instance, with what it reads; the code that decides its result.
    pub fn look(
        &mut self,
        axes: &[Axis],
        decl: &StageDecl,
        params: &Params,
        wires: &[Wire],
        metric: Option<Source>,
    ) -> Result<Code, Diagnostic> {
        if let (Some(select), Some(source)) = (&decl.select, metric) {
            let table = self.of(source);
            if table.has_column(&select.column) == Some(false) {
                let known = table.columns.as_deref().unwrap_or_default();
                let names = known.iter().map(String::as_str);
                let message = format!("`{}` has no column `{}`", select.metric.name, select.column);
                return Err(Diagnostic::new(message)
                    .at(
                        select.span,
                        nearest(&select.column, names).unwrap_or_default(),
                    )
                    .help(format!("its columns: {}", known.join(", "))));
            }
        }
        let inputs: BTreeMap<&str, Arc<Expected>> = wires
            .iter()
            .map(|wire| (wire.port.as_str(), self.read(&wire.from, axes)))
            .collect();
        let inputs = ExpectedInputs(inputs);
        let expected = decl.kind.expect(params, &inputs);
        let expected = expected.map_err(|mismatch| placed(decl, mismatch))?;
        let outputs = match self.known.get(&expected) {
            Some(outputs) => outputs.clone(),
            None => {
                let each = expected.iter().cloned().map(Arc::new);
                let outputs: Outputs = each.collect();
                self.known.insert(expected, outputs.clone());
                outputs
            }
        };
        self.of_instance.push(outputs);
        let code = decl.kind.code(params, &inputs);
        let collects = |wire: &Wire| matches!(wire.from, Feed::Collect { .. });
        Ok(match wires.iter().any(collects) {
            true => code.collecting(),
            false => code,
        })
    }

    /// Forgets the instances from this one on: their stage is wrong.
    pub fn truncate(&mut self, instances: usize) {
        self.of_instance.truncate(instances);
    }

    fn of(&self, source: Source) -> Arc<Expected> {
        let outputs = self.of_instance.get(source.instance);
        let found = outputs.and_then(|outputs| outputs.get(source.output));
        found.cloned().unwrap_or_default()
    }

    /// What is known of all that a port may read.
    fn read(&self, feed: &Feed, axes: &[Axis]) -> Arc<Expected> {
        let mut all: Option<Arc<Expected>> = None;
        for source in feed.sources() {
            let one = self.of(source);
            all = Some(match all {
                None => one,
                Some(all) if Arc::ptr_eq(&all, &one) || *all == *one => all,
                Some(all) => Arc::new(all.or(&one)),
            });
        }
        let all = all.unwrap_or_default();
        match feed {
            Feed::Collect { axes: along, .. } => {
                let names = along.iter().map(|axis| axes[*axis].name.clone());
                let axes = all.axes.iter().cloned().chain(names).collect();
                Arc::new(Expected {
                    axes,
                    ..(*all).clone()
                })
            }
            _ => all,
        }
    }
}

/// A mismatch, located in the file.
fn placed(decl: &StageDecl, mismatch: Mismatch) -> Diagnostic {
    let span = match &mismatch.at {
        Blamed::Input(port) => {
            let input = decl.inputs.iter().find(|input| input.port == *port);
            input.map(|input| input.from.span)
        }
        Blamed::Param(param) => {
            let entry = decl.params.iter().find(|entry| entry.key == *param);
            entry.map(|entry| entry.node.span)
        }
        Blamed::Stage => None,
    };
    Diagnostic::new(mismatch.message)
        .at(span.unwrap_or(decl.span), "")
        .maybe_help(mismatch.help)
}
