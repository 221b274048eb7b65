//! What the pipeline file implies about every table before it is computed, stage by stage, and mismatches in it.
//! Knows nothing of kinds: they describe what they expect.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stages::{AxisValues, Blamed, Code, Expected, ExpectedInputs, Mismatch};

use store::Value;

use super::instance::{Feed, Source, Wire};
use super::variant::Variant;
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
    /// Refuses a metric whose table will not have the column.
    pub fn check_metric(&self, decl: &StageDecl, metric: Option<Source>) -> Result<(), Diagnostic> {
        let (Some(select), Some(source)) = (&decl.select, metric) else {
            return Ok(());
        };
        let table = self.of(source);
        if table.has_column(&select.column) != Some(false) {
            return Ok(());
        }
        let known = table.columns.as_deref().unwrap_or_default();
        let names = known.iter().map(String::as_str);
        let message = format!("`{}` has no column `{}`", select.metric.name, select.column);
        Err(Diagnostic::new(message)
            .at(
                select.span,
                nearest(&select.column, names).unwrap_or_default(),
            )
            .help(format!("its columns: {}", known.join(", "))))
    }

    /// Looks at the next instance: drops what it does not read, and gives the code that decides its result and the
    /// ports that were dropped.
    pub fn look(
        &mut self,
        axes: &[Axis],
        decl: &StageDecl,
        variant: &Variant,
        wires: &mut Vec<Wire>,
    ) -> Result<(Code, Vec<&'static str>), Diagnostic> {
        let mut inputs: BTreeMap<&str, Arc<Expected>> = wires
            .iter()
            .map(|wire| (wire.port.as_str(), self.read(&wire.from, axes)))
            .collect();
        let unread = decl
            .kind
            .unread(&variant.params, &ExpectedInputs(inputs.clone()));
        inputs.retain(|port, _| !unread.contains(port));
        let inputs = ExpectedInputs(inputs);
        let expected = decl.kind.expect(&variant.params, &inputs);
        let mut expected = expected.map_err(|mismatch| placed(decl, variant, mismatch))?;
        for model in expected.iter_mut().filter_map(|table| table.model.as_mut()) {
            model.stage = Some(decl.name.clone());
        }
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
        let code = decl.kind.code(&variant.params, &inputs);
        drop(inputs);
        wires.retain(|wire| !unread.contains(&wire.port.as_str()));
        let collects = |wire: &Wire| matches!(wire.from, Feed::Collect { .. });
        let code = match wires.iter().any(collects) {
            true => code.collecting(),
            false => code,
        };
        Ok((code, unread))
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
                let names = along.iter().map(|axis| axes[*axis].column.clone());
                let values = along.iter().map(|axis| axis_values(&axes[*axis]));
                Arc::new(Expected {
                    axes: all.axes.iter().cloned().chain(names).collect(),
                    axis_values: all.axis_values.iter().cloned().chain(values).collect(),
                    ..(*all).clone()
                })
            }
            _ => all,
        }
    }
}

fn axis_values(axis: &Axis) -> AxisValues {
    let shown = |value: &Value| value.as_text().map_or(value.to_string(), str::to_owned);
    AxisValues {
        name: axis.column.clone(),
        values: axis.values.iter().map(shown).collect(),
        left_out: axis.left_out.iter().map(shown).collect(),
    }
}

/// A mismatch, located in the file.
fn placed(decl: &StageDecl, variant: &Variant, mismatch: Mismatch) -> Diagnostic {
    let span = match &mismatch.at {
        Blamed::Input(port) => variant.input_span(port),
        Blamed::Param(param) => variant.param_span(param),
        Blamed::Stage => None,
    };
    Diagnostic::new(mismatch.message)
        .at(span.unwrap_or(decl.span), "")
        .maybe_help(mismatch.help)
}
