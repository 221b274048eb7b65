//! The one resolver of `stage[axis=value].output[column=value]`: from a text to outputs of instances and, where the
//! brackets name columns, to a cell. Works on whatever has instances: a plan, or a recorded run.

use super::cell::CellFilter;
use super::reference::{Reference, axes, parse};
use crate::diagnostic::{Diagnostic, nearest};
use crate::plan::{self, Plan, Source};

/// Instances of stages with their outputs, to be found by name.
pub trait Catalog {
    /// The positions of a stage's instances, or why there are none.
    fn instances_of(&self, stage: &str) -> Result<Vec<usize>, Diagnostic>;
    /// `name` or `name[axis=value]`.
    fn label(&self, instance: usize) -> &str;
    /// The names of an instance's outputs.
    fn outputs(&self, instance: usize) -> Vec<&str>;
    /// Axes whose values are variants of an ablation, each with the one that is meant unless another is named.
    fn bases(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// What a reference names.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The outputs, one for each instance.
    pub outputs: Vec<Source>,
    /// Which cell, if the brackets name columns.
    pub cell: Option<CellFilter>,
}

/// Finds what a text names. Without an output's name the first is meant.
pub fn find(catalog: &impl Catalog, text: &str) -> Result<Located, Diagnostic> {
    let reference = parse(text)?;
    let all = catalog.instances_of(reference.stage)?;
    let known = axes(catalog.label(all[0]));
    let is_axis = |name: &str| known.iter().any(|(axis, _)| *axis == name);
    let (own, filters): (Vec<_>, Vec<_>) = reference
        .filters
        .iter()
        .cloned()
        .partition(|(name, _)| is_axis(name));
    let named = |axis: &str| own.iter().any(|(name, _)| name == axis);
    let bases = catalog.bases().into_iter();
    let bases = bases.filter(|(axis, _)| is_axis(axis) && !named(axis));
    let point: Vec<_> = own.iter().cloned().chain(bases).collect();
    let instances = at_point(catalog, &reference, all, &point)?;
    let is_output = |name: &str| catalog.outputs(instances[0]).contains(&name);
    let (output, column) = match (reference.before_brackets, reference.after_brackets) {
        (None, Some(name)) if is_output(name) => (Some(name), None),
        // Without a row, what follows a dot can only be an output.
        (None, Some(name)) if filters.is_empty() => (Some(name), None),
        named => named,
    };
    let mut outputs = Vec::with_capacity(instances.len());
    for instance in instances {
        let output = position(catalog, instance, output)?;
        outputs.push(Source { instance, output });
    }
    let cell = (!filters.is_empty()).then(|| CellFilter {
        filters,
        column: column.map(str::to_owned),
    });
    if cell.is_some() && outputs.len() > 1 {
        let labels = outputs.iter().take(6);
        let labels: Vec<&str> = labels.map(|s| catalog.label(s.instance)).collect();
        let many = outputs.len();
        // A filter that does not name an axis is read as a column filter.
        let mistyped = cell.as_ref().and_then(|cell| {
            let name = &cell.filters[0].0;
            nearest(name, known.iter().map(|(axis, _)| *axis))
        });
        return Err(
            Diagnostic::new(format!("`{text}` matches {many} instances, not one cell"))
                .maybe_help(mistyped)
                .help(format!("add its axes: {}", labels.join(", "))),
        );
    }
    Ok(Located { outputs, cell })
}

/// The outputs of a reference to a whole table.
pub fn find_table(catalog: &impl Catalog, text: &str) -> Result<Vec<Source>, Diagnostic> {
    let found = find(catalog, text)?;
    match found.cell {
        None => Ok(found.outputs),
        Some(filter) => {
            let (name, value) = &filter.filters[0];
            let all = catalog.instances_of(parse(text)?.stage)?.into_iter();
            let labels: Vec<&str> = all.take(6).map(|n| catalog.label(n)).collect();
            Err(Diagnostic::new(format!(
                "no instance `{text}`: {name}={value} is not an axis"
            ))
            .help(format!("instances: {}", labels.join(", "))))
        }
    }
}

/// The instances that `stage` or `stage[axis=value,…]` names.
pub fn find_instances(catalog: &impl Catalog, target: &str) -> Result<Vec<usize>, Diagnostic> {
    let reference = parse(target)?;
    let stage = match (reference.before_brackets, reference.after_brackets) {
        (None, None) => reference.stage,
        // An output is not a target.
        _ => target,
    };
    let all = catalog.instances_of(stage)?;
    at_point(catalog, &reference, all, &reference.filters)
}

/// The instances that some targets name, each once; without targets, all.
pub fn chosen(plan: &Plan<'_>, targets: &[String]) -> Result<Vec<usize>, Diagnostic> {
    if targets.is_empty() {
        return Ok((0..plan.instances.len()).collect());
    }
    let mut found = Vec::new();
    for target in targets {
        found.extend(find_instances(plan, target)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// For each instance, whether the targets need it. No targets: everything.
pub fn wanted(plan: &Plan<'_>, targets: &[String]) -> Result<Vec<bool>, Vec<Diagnostic>> {
    if targets.is_empty() {
        return Ok(vec![true; plan.instances.len()]);
    }
    let mut wanted = vec![false; plan.instances.len()];
    let mut problems = Vec::new();
    for target in targets {
        match find_instances(plan, target) {
            Ok(found) => found.into_iter().for_each(|n| wanted[n] = true),
            Err(problem) => problems.push(problem),
        }
    }
    plan::reach(plan, &mut wanted);
    match problems.is_empty() {
        true => Ok(wanted),
        false => Err(problems),
    }
}

/// Those instances that have these values on their axes.
fn at_point(
    catalog: &impl Catalog,
    reference: &Reference<'_>,
    all: Vec<usize>,
    point: &[(String, String)],
) -> Result<Vec<usize>, Diagnostic> {
    if point.is_empty() {
        return Ok(all);
    }
    let fits = |n: &usize| {
        let own = axes(catalog.label(*n));
        let has =
            |(name, value): &(String, String)| own.iter().any(|(a, v)| a == name && v == value);
        point.iter().all(has)
    };
    let found: Vec<usize> = all.iter().copied().filter(fits).collect();
    if found.is_empty() {
        let labels: Vec<&str> = all.iter().take(6).map(|n| catalog.label(*n)).collect();
        let (text, stage) = (reference.text, reference.stage);
        return Err(Diagnostic::new(format!("no instance `{text}`"))
            .help(format!("instances of `{stage}`: {}", labels.join(", "))));
    }
    Ok(found)
}

fn position(
    catalog: &impl Catalog,
    instance: usize,
    output: Option<&str>,
) -> Result<usize, Diagnostic> {
    let Some(name) = output else { return Ok(0) };
    let outputs = catalog.outputs(instance);
    let found = outputs.iter().position(|known| *known == name);
    found.ok_or_else(|| {
        let label = catalog.label(instance);
        Diagnostic::new(format!("`{label}` has no output `{name}`"))
            .maybe_help(nearest(name, outputs.iter().copied()))
            .help(format!("outputs: {}", outputs.join(", ")))
    })
}

impl Catalog for Plan<'_> {
    fn instances_of(&self, stage: &str) -> Result<Vec<usize>, Diagnostic> {
        let stages = &self.pipeline.stages;
        match stages.iter().position(|known| known.name == stage) {
            Some(at) if stages[at].picks => {
                let picked = stages[at]
                    .inputs
                    .first()
                    .and_then(|input| input.node.as_text());
                let problem = Diagnostic::new(format!(
                    "`{stage}` only picks instances for its readers: it has no results itself"
                ));
                Err(problem.maybe_help(picked.map(|name| format!("name `{name}`"))))
            }
            Some(stage) => Ok(self.of_stage[stage].clone().collect()),
            None => {
                let names = stages.iter().map(|stage| stage.name.as_str());
                Err(Diagnostic::new(format!("no stage `{stage}`"))
                    .maybe_help(nearest(stage, names))
                    .help("`ablate graph` shows the stages of the pipeline"))
            }
        }
    }

    fn label(&self, instance: usize) -> &str {
        &self.instances[instance].label
    }

    fn bases(&self) -> Vec<(String, String)> {
        let axes = self.pipeline.axes.iter();
        axes.filter_map(|axis| {
            let base = axis.values[axis.base()?].as_text()?;
            Some((axis.name.clone(), base.to_owned()))
        })
        .collect()
    }

    fn outputs(&self, instance: usize) -> Vec<&str> {
        let outputs = self.instances[instance].outputs.iter();
        outputs.map(String::as_str).collect()
    }
}
