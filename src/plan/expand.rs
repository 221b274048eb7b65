//! Multiplies stages by their axes: each instance with its parameters and wires.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use stages::{Inputs, Port, Ports, Stage};
use store::{Params, Value};

use super::files::{Files, Hasher};
use super::foresee::Foresight;
use super::instance::{Feed, Instance, Plan, Source, Wire};
use super::order;
use crate::config::{Axis, Bindings, Pipeline, Reference, StageDecl, check_params, fill};
use crate::diagnostic::{Diagnostic, nearest};

/// More instances than this are a slip of the pen.
const MOST: usize = 1_000_000;

/// A stage's place among the instances.
struct Placed {
    /// Its axes in order.
    axes: Vec<usize>,
    /// Its instances.
    range: std::ops::Range<usize>,
}

/// What depends on the parameters alone, shared by instances that differ in inherited axes.
struct Variant {
    params: Arc<Params>,
    seed: Option<u64>,
    files: Arc<Files>,
    ports: Ports,
    outputs: Arc<Vec<String>>,
}

type Checked = Result<Variant, Vec<Diagnostic>>;

/// Makes the instances of all stages, in the given order.
pub fn expand<'p>(pipeline: &'p Pipeline, order: &[usize]) -> Result<Plan<'p>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let hasher = Hasher::default();
    // Checking parameters is most of the work, and stages that mention no axis need no order.
    let checked = pipeline.stages.par_iter();
    let mut plain: Vec<Option<Checked>> = checked
        .map(|decl| {
            decl.axes
                .is_empty()
                .then(|| variant(pipeline, decl, &[], &hasher))
        })
        .collect();
    let mut instances: Vec<Instance> = Vec::with_capacity(order.len());
    let mut foresight = Foresight::default();
    let mut placed: Vec<Option<Placed>> = pipeline.stages.iter().map(|_| None).collect();
    for &stage in order {
        let decl = &pipeline.stages[stage];
        if order::reads(decl).any(|read| placed[read.stage].is_none()) {
            // It reads a stage that is wrong, and cannot be checked against it.
            continue;
        }
        let mut found = Vec::new();
        let axes = axes_of(pipeline, decl, &placed, &mut found);
        if !found.is_empty() {
            problems.append(&mut found);
            continue;
        }
        let count = axes.iter().map(|axis| pipeline.axes[*axis].values.len());
        let count = count.fold(1_usize, usize::saturating_mul);
        if instances.len().saturating_add(count) > MOST {
            found.push(
                Diagnostic::new(format!(
                    "the axes multiply the stages into more than {MOST} instances"
                ))
                .at(decl.span, format!("this one alone has {count} instances")),
            );
            problems.append(&mut found);
            return Err(problems);
        }
        let first = instances.len();
        let mut variants: BTreeMap<Vec<usize>, Variant> = BTreeMap::new();
        for n in 0..count {
            let point = point(n, &axes, &pipeline.axes);
            let own: Vec<usize> = decl
                .axes
                .iter()
                .map(|axis| value_at(&point, *axis))
                .collect();
            if !variants.contains_key(&own) {
                let checked = plain[stage].take();
                match checked.unwrap_or_else(|| variant(pipeline, decl, &own, &hasher)) {
                    Ok(variant) => {
                        check_ports(decl, &variant.ports, &mut found);
                        drop(variants.insert(own.clone(), variant));
                    }
                    Err(mut errors) => {
                        found.append(&mut errors);
                        break;
                    }
                }
            }
            if !found.is_empty() {
                break;
            }
            let variant = &variants[&own];
            let wires = wires(pipeline, decl, &variant.ports, &point, &placed, &instances);
            let foreseen = wires.and_then(|(wires, metrics)| {
                let metric = metrics.first().copied();
                let code = foresight.look(&pipeline.axes, decl, &variant.params, &wires, metric)?;
                Ok((wires, metrics, code))
            });
            match foreseen {
                Ok((wires, metrics, code)) => instances.push(Instance {
                    stage,
                    label: label(decl, &point, &pipeline.axes),
                    point,
                    params: variant.params.clone(),
                    seed: variant.seed,
                    files: variant.files.clone(),
                    code,
                    wires,
                    metrics,
                    outputs: variant.outputs.clone(),
                }),
                Err(problem) => {
                    found.push(problem);
                    break;
                }
            }
        }
        if !found.is_empty() {
            problems.append(&mut found);
            instances.truncate(first);
            foresight.truncate(first);
            continue;
        }
        placed[stage] = Some(Placed {
            axes,
            range: first..instances.len(),
        });
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let of_stage = placed
        .into_iter()
        .map(|placed| placed.map_or(0..0, |p| p.range));
    Ok(Plan {
        pipeline,
        of_stage: of_stage.collect(),
        instances,
    })
}

/// A stage's axes: those it mentions and those of what it reads, less what it collects.
fn axes_of(
    pipeline: &Pipeline,
    decl: &StageDecl,
    placed: &[Option<Placed>],
    problems: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    let of = |reference: &Reference| match &placed[reference.stage] {
        Some(placed) => placed.axes.as_slice(),
        None => &[],
    };
    let gathered: Vec<_> = match &decl.select {
        Some(select) => select.over.clone(),
        None => decl.over.clone(),
    };
    let mut axes = decl.axes.clone();
    for input in &decl.inputs {
        axes.extend_from_slice(of(&input.from));
    }
    for (axis, span) in &gathered {
        if !axes.contains(axis) {
            let name = &pipeline.axes[*axis].name;
            problems.push(
                Diagnostic::new(format!("no input of `{}` has the axis `{name}`", decl.name))
                    .at(*span, "")
                    .help(format!("mention ${{{name}}} in a stage that it reads")),
            );
        }
    }
    axes.retain(|axis| !gathered.iter().any(|(gone, _)| gone == axis));
    axes.sort_unstable();
    axes.dedup();
    if let Some(select) = &decl.select {
        let metric = of(&select.metric);
        for (axis, span) in &select.over {
            if !metric.contains(axis) {
                problems.push(
                    Diagnostic::new(format!(
                        "the metric `{}` does not have the axis `{}`",
                        select.metric.name, pipeline.axes[*axis].name
                    ))
                    .at(select.metric.span, "it does not distinguish the instances")
                    .at(*span, "selected over"),
                );
            }
        }
        for axis in metric {
            if !axes.contains(axis) && !select.over.iter().any(|(over, _)| over == axis) {
                problems.push(
                    Diagnostic::new(format!(
                        "the metric `{}` has the axis `{}`, but `{}` does not",
                        select.metric.name, pipeline.axes[*axis].name, decl.name
                    ))
                    .at(
                        select.metric.span,
                        "it is ambiguous which of its instances to use",
                    )
                    .help("collect that axis with `over` in a stage in between"),
                );
            }
        }
    }
    axes
}

/// Checks parameters, seed and files at one point of the stage's own axes.
fn variant(pipeline: &Pipeline, decl: &StageDecl, own: &[usize], hasher: &Hasher) -> Checked {
    let axes = decl.axes.iter().zip(own);
    let bindings: Bindings<'_> = axes
        .map(|(axis, value)| {
            let axis = &pipeline.axes[*axis];
            (axis.name.as_str(), &axis.values[*value])
        })
        .collect();
    let params = check_params(decl.kind, &decl.params, &bindings, decl.span)?;
    let files = hasher
        .declared(&pipeline.dir, decl.kind, &params)
        .map_err(|unusable| {
            let entry = decl.params.iter().find(|e| e.key == unusable.param);
            let span = entry.map_or(decl.span, |entry| entry.node.span);
            vec![
                Diagnostic::new(unusable.message)
                    .at(span, "")
                    .help(unusable.help),
            ]
        })?;
    let ports = decl.kind.ports(&params);
    Ok(Variant {
        seed: seed(pipeline, decl, &bindings).map_err(|problem| vec![problem])?,
        params: Arc::new(params),
        files,
        outputs: Arc::new(ports.outputs.iter().map(|port| port.name.clone()).collect()),
        ports,
    })
}

fn seed(
    pipeline: &Pipeline,
    decl: &StageDecl,
    bindings: &Bindings<'_>,
) -> Result<Option<u64>, Diagnostic> {
    let description = decl.kind.describe();
    match &decl.seed {
        None => Ok(description.seeded.then_some(pipeline.seed)),
        Some(node) if !description.seeded => Err(Diagnostic::new(format!(
            "`{}` draws no random numbers",
            description.kind
        ))
        .at(node.span, "remove `seed`")),
        Some(node) => match fill(node, bindings) {
            Value::Int(seed) if seed >= 0 => Ok(Some(seed.unsigned_abs())),
            other => Err(Diagnostic::new("`seed` must be a non-negative integer")
                .at(node.span, format!("this is {other}"))),
        },
    }
}

fn check_ports(decl: &StageDecl, ports: &Ports, problems: &mut Vec<Diagnostic>) {
    let kind = decl.kind.describe().kind;
    let (named, others) = match &ports.inputs {
        Inputs::Any(needed) => (needed, true),
        Inputs::Named(named) => (named, false),
    };
    let list = || match named.is_empty() {
        true => format!("`{kind}` reads nothing: remove `inputs`"),
        false => {
            let names: Vec<_> = named.iter().map(|port| port.name.as_str()).collect();
            format!("ports of `{kind}`: {}", names.join(", "))
        }
    };
    for input in &decl.inputs {
        if !others && !named.iter().any(|port| port.name == input.port) {
            let names = named.iter().map(|port| port.name.as_str());
            let hint = nearest(&input.port, names).unwrap_or_default();
            problems.push(
                Diagnostic::new(format!("`{kind}` has no input `{}`", input.port))
                    .at(input.span, hint)
                    .help(list()),
            );
        }
    }
    for port in named.iter().filter(|port| port.required) {
        if !decl.inputs.iter().any(|input| input.port == port.name) {
            let names = decl.inputs.iter().map(|input| input.port.as_str());
            problems.push(
                Diagnostic::new(format!("`{}` has no input `{}`", decl.name, port.name))
                    .at(
                        decl.span,
                        format!("`{kind}` requires this input ({})", port.holds),
                    )
                    .maybe_help(nearest(&port.name, names))
                    .help(format!("inputs = {{ {} = \"STAGE\" }}", port.name)),
            );
        }
    }
}

type Wired = (Vec<Wire>, Vec<Source>);

/// Connects one instance to the instances that it reads.
fn wires(
    pipeline: &Pipeline,
    decl: &StageDecl,
    ports: &Ports,
    point: &[(usize, usize)],
    placed: &[Option<Placed>],
    instances: &[Instance],
) -> Result<Wired, Diagnostic> {
    let gathered: Vec<usize> = match &decl.select {
        Some(select) => select.over.iter().map(|(axis, _)| *axis).collect(),
        None => decl.over.iter().map(|(axis, _)| *axis).collect(),
    };
    // Every combination of values of the gathered axes, the last axis fastest.
    let combinations: usize = gathered
        .iter()
        .map(|a| pipeline.axes[*a].values.len())
        .product();
    let source = |from: &Reference, extra: &[(usize, usize)]| -> Result<Source, Diagnostic> {
        let placed = placed[from.stage].as_ref().expect("readers come later");
        let at = placed.axes.iter().fold(0, |at, axis| {
            let value = match extra.iter().find(|(a, _)| a == axis) {
                Some((_, value)) => *value,
                None => value_at(point, *axis),
            };
            at * pipeline.axes[*axis].values.len() + value
        });
        let instance = placed.range.start + at;
        output(from, &instances[instance]).map(|output| Source { instance, output })
    };
    let mut wires = Vec::with_capacity(decl.inputs.len());
    for input in &decl.inputs {
        let theirs = &placed[input.from.stage]
            .as_ref()
            .expect("readers come later")
            .axes;
        let along: Vec<usize> = gathered
            .iter()
            .copied()
            .filter(|a| theirs.contains(a))
            .collect();
        let from = if along.is_empty() {
            Feed::One(source(&input.from, &[])?)
        } else if decl.select.is_some() {
            let candidates = (0..combinations)
                .map(|n| source(&input.from, &self::point(n, &gathered, &pipeline.axes)));
            Feed::Pick(candidates.collect::<Result<_, _>>()?)
        } else {
            let count: usize = along
                .iter()
                .map(|a| pipeline.axes[*a].values.len())
                .product();
            let parts = (0..count).map(|n| {
                let extra = self::point(n, &along, &pipeline.axes);
                let values = extra.iter().map(|(_, value)| *value).collect();
                source(&input.from, &extra).map(|source| (values, source))
            });
            Feed::Collect {
                parts: parts.collect::<Result<_, _>>()?,
                axes: along,
            }
        };
        if let Some(first) = from.sources().next() {
            check_holds(
                pipeline,
                decl,
                ports,
                &input.port,
                &input.from,
                first,
                instances,
            )?;
        }
        wires.push(Wire {
            port: input.port.clone(),
            from,
        });
    }
    let metrics = match &decl.select {
        None => Vec::new(),
        Some(select) => (0..combinations)
            .map(|n| source(&select.metric, &self::point(n, &gathered, &pipeline.axes)))
            .collect::<Result<_, _>>()?,
    };
    Ok((wires, metrics))
}

/// The position of the output that a reference names.
fn output(from: &Reference, instance: &Instance) -> Result<usize, Diagnostic> {
    let Some(name) = &from.output else {
        return Ok(0);
    };
    let found = instance.outputs.iter().position(|output| output == name);
    found.ok_or_else(|| {
        let known = instance.outputs.iter().map(String::as_str);
        Diagnostic::new(format!("`{}` has no output `{name}`", from.name))
            .at(from.span, nearest(name, known).unwrap_or_default())
            .help(format!(
                "outputs of `{}`: {}",
                from.name,
                instance.outputs.join(", ")
            ))
    })
}

/// A port that wants a certain kind of table does not take another kind.
fn check_holds(
    pipeline: &Pipeline,
    decl: &StageDecl,
    ports: &Ports,
    port: &str,
    from: &Reference,
    source: Source,
    instances: &[Instance],
) -> Result<(), Diagnostic> {
    let (Inputs::Any(named) | Inputs::Named(named)) = &ports.inputs;
    let Some(Port { holds, .. }) = named.iter().find(|p| p.name == port) else {
        return Ok(());
    };
    let producer = &instances[source.instance];
    let kind: &dyn Stage = pipeline.stages[producer.stage].kind;
    let made = kind.ports(&producer.params).outputs[source.output].holds;
    if *holds == "table" || made == "table" || *holds == made {
        return Ok(());
    }
    Err(Diagnostic::new(format!(
        "`{}` needs {holds}, but `{}` produces {made}",
        decl.name, from.name
    ))
    .at(from.span, ""))
}

/// The n-th combination of values of some axes, the last axis fastest.
fn point(mut n: usize, axes: &[usize], all: &[Axis]) -> Vec<(usize, usize)> {
    let mut point: Vec<_> = axes.iter().map(|axis| (*axis, 0)).collect();
    for (axis, value) in point.iter_mut().rev() {
        let len = all[*axis].values.len();
        *value = n % len;
        n /= len;
    }
    point
}

fn value_at(point: &[(usize, usize)], axis: usize) -> usize {
    let found = point.iter().find(|(a, _)| *a == axis);
    found.expect("a stage has the axes of what it reads").1
}

fn label(decl: &StageDecl, point: &[(usize, usize)], axes: &[Axis]) -> String {
    if point.is_empty() {
        return decl.name.clone();
    }
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let parts: Vec<String> = point
        .iter()
        .map(|(axis, value)| {
            let axis = &axes[*axis];
            match &axis.values[*value] {
                Value::Text(text) if !text.is_empty() && text.chars().all(plain) => {
                    format!("{}={text}", axis.name)
                }
                value => format!("{}={value}", axis.name),
            }
        })
        .collect();
    format!("{}[{}]", decl.name, parts.join(","))
}
