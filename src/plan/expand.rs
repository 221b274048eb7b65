//! Multiplies stages by their axes: each instance with its parameters and wires.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::files::Hasher;
use super::foresee::Foresight;
use super::grid::{Placed, Point, Spot, combinations, label, point, value_at};
use super::instance::{Instance, Plan, Selection, Source, Wire};
use super::stage_axes::{StageAxes, stage_axes};
use super::variant::{Variant, check_known_ports, variant};
use super::wiring::{Surroundings, check_required};
use crate::config::{Axis, Exclusion, Pipeline, StageDecl};
use crate::diagnostic::Diagnostic;

/// More instances than this are a slip of the pen.
const MOST: usize = 1_000_000;

type Checked = Result<Variant, Vec<Diagnostic>>;

/// Makes the instances of all stages, in the given order.
pub fn expand<'p>(pipeline: &'p Pipeline, order: &[usize]) -> Result<Plan<'p>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let hasher = Hasher::default();
    // Checking parameters is most of the work, and stages that mention no axis need no order.
    let checked = pipeline.stages.par_iter();
    let plain: Vec<Option<Checked>> = checked
        .map(|decl| {
            let alone = decl.axes.is_empty();
            alone.then(|| variant(pipeline, decl, &[], &hasher))
        })
        .collect();
    let mut expansion = Expansion {
        pipeline,
        hasher,
        plain,
        placed: pipeline.stages.iter().map(|_| None).collect(),
        of_stage: vec![0..0; pipeline.stages.len()],
        instances: Vec::with_capacity(order.len()),
        selections: Vec::new(),
        foresight: Foresight::default(),
        without: Vec::new(),
    };
    for &stage in order {
        let reads = &pipeline.stages[stage].reads;
        if reads
            .iter()
            .any(|read| expansion.placed[read.stage].is_none())
        {
            // It reads a stage that is wrong, and cannot be checked against it.
            continue;
        }
        let first = expansion.instances.len();
        match expansion.stage(stage) {
            Ok(placed) => {
                expansion.of_stage[stage] = first..expansion.instances.len();
                expansion.placed[stage] = Some(placed);
            }
            Err(Wrong { mut list, fatal }) => {
                problems.append(&mut list);
                if fatal {
                    return Err(problems);
                }
                expansion.instances.truncate(first);
                expansion.foresight.truncate(first);
            }
        }
    }
    if problems.is_empty() {
        problems = expansion.left_out_everywhere();
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Plan {
        pipeline,
        of_stage: expansion.of_stage,
        instances: expansion.instances,
        selections: expansion.selections,
    })
}

/// What is wrong with a stage, and whether it is useless to go on.
struct Wrong {
    list: Vec<Diagnostic>,
    fatal: bool,
}

impl From<Vec<Diagnostic>> for Wrong {
    fn from(list: Vec<Diagnostic>) -> Wrong {
        Wrong { list, fatal: false }
    }
}

impl From<Diagnostic> for Wrong {
    fn from(problem: Diagnostic) -> Wrong {
        vec![problem].into()
    }
}

/// A plan that is being made.
struct Expansion<'p> {
    pipeline: &'p Pipeline,
    hasher: Hasher,
    /// Stages that mention no axis, checked beforehand.
    plain: Vec<Option<Checked>>,
    placed: Vec<Option<Placed>>,
    of_stage: Vec<std::ops::Range<usize>>,
    instances: Vec<Instance>,
    selections: Vec<Selection>,
    foresight: Foresight,
    /// Values of an axis that a stage excludes as a whole: some other stage must have them.
    without: Vec<(usize, usize, Diagnostic)>,
}

/// What the instances of a stage have shown so far.
#[derive(Default)]
struct Seen {
    /// The stage at each point of the axes that decide its keys.
    variants: BTreeMap<Vec<usize>, Variant>,
    /// Changes from outside that had an effect somewhere.
    applied: Vec<bool>,
    /// Exclusions that left something out.
    excluded: Vec<bool>,
    /// Connected inputs that some instance did not read, and those that some did.
    unread: Vec<String>,
    read: Vec<String>,
}

impl Expansion<'_> {
    /// The instances of one stage.
    fn stage(&mut self, stage: usize) -> Result<Placed, Wrong> {
        let decl = &self.pipeline.stages[stage];
        let mut found = Vec::new();
        let axes = stage_axes(self.pipeline, decl, &self.placed, &mut found);
        if !found.is_empty() {
            return Err(found.into());
        }
        check_exclusions(self.pipeline, decl, &axes)?;
        let count = combinations(&axes.own, &self.pipeline.axes);
        if self.instances.len().saturating_add(count) > MOST {
            let message = format!("the axes multiply the stages into more than {MOST} instances");
            let problem = Diagnostic::new(message)
                .at(decl.span, format!("this one alone has {count} instances"));
            return Err(Wrong {
                list: vec![problem],
                fatal: true,
            });
        }
        let mut seen = Seen {
            applied: vec![false; decl.changes.len()],
            excluded: vec![false; decl.except.len()],
            ..Seen::default()
        };
        let mut at = Vec::with_capacity(count);
        for n in 0..count {
            let point = point(n, &axes.own, &self.pipeline.axes);
            let hits = decl
                .except
                .iter()
                .map(|exclusion| exclusion.matches(&point));
            let hits: Vec<bool> = hits.collect();
            for (known, hit) in seen.excluded.iter_mut().zip(&hits) {
                *known |= hit;
            }
            at.push(match hits.contains(&true) {
                true => None,
                false => self.spot(stage, decl, &axes, point, &mut seen)?,
            });
        }
        let placed = Placed { axes: axes.own, at };
        check_seen(self.pipeline, decl, &seen)?;
        self.without
            .extend(check_left(self.pipeline, decl, &placed)?);
        Ok(placed)
    }

    /// What stages exclude of an axis although no other stage has it.
    fn left_out_everywhere(&mut self) -> Vec<Diagnostic> {
        let kept = |axis: usize, value: usize| {
            let mut instances = self.instances.iter();
            instances.any(|instance| instance.point.contains(&(axis, value)))
        };
        let everywhere = std::mem::take(&mut self.without).into_iter();
        let everywhere = everywhere.filter(|(axis, value, _)| !kept(*axis, *value));
        everywhere.map(|(_, _, problem)| problem).collect()
    }

    /// What a stage has at one point; nothing if something that it reads was left out.
    fn spot(
        &mut self,
        stage: usize,
        decl: &StageDecl,
        axes: &StageAxes,
        point: Point,
        seen: &mut Seen,
    ) -> Result<Option<Spot>, Wrong> {
        let own: Vec<usize> = decl
            .axes
            .iter()
            .map(|axis| value_at(&point, *axis))
            .collect();
        if !seen.variants.contains_key(&own) {
            let checked = self.plain[stage].take();
            let checked =
                checked.unwrap_or_else(|| variant(self.pipeline, decl, &own, &self.hasher));
            let variant = checked?;
            let mut found = Vec::new();
            if !decl.picks {
                check_known_ports(decl, &variant, &mut found);
            }
            if !found.is_empty() {
                return Err(found.into());
            }
            variant
                .written
                .applied
                .iter()
                .for_each(|n| seen.applied[*n] = true);
            seen.variants.insert(own.clone(), variant);
        }
        let variant = &seen.variants[&own];
        let surroundings = Surroundings {
            pipeline: self.pipeline,
            placed: &self.placed,
            instances: &self.instances,
        };
        let next = self.selections.len();
        let wired = surroundings.connect(decl, variant, axes, &point, next)?;
        let Some(mut wired) = wired else {
            return Ok(None);
        };
        let select = wired.selection.as_ref().map(|s| s.metrics[0]);
        if decl.picks {
            self.foresight.check_metric(decl, select)?;
            self.selections.extend(wired.selection);
            let candidates = wired.candidates.unwrap_or_default();
            return Ok(Some(Spot::Best(next, candidates)));
        }
        surroundings.follow(decl, variant, &mut wired.wires);
        check_required(decl, variant, &wired.wires)?;
        self.foresight.check_metric(decl, select)?;
        let mut wires = wired.wires;
        let (code, unread) = self
            .foresight
            .look(&self.pipeline.axes, decl, variant, &mut wires)?;
        for (input, _) in &variant.inputs {
            let list = match unread.contains(&input.port.as_str()) {
                true => &mut seen.unread,
                false => &mut seen.read,
            };
            if !list.contains(&input.port) {
                list.push(input.port.clone());
            }
        }
        self.selections.extend(wired.selection);
        self.instances.push(Instance {
            stage,
            label: label(decl, &point, &self.pipeline.axes),
            point,
            params: variant.params.clone(),
            seed: variant.seed,
            files: variant.declared.files.clone(),
            installed: variant.declared.installed.clone(),
            code,
            metrics: metrics(&wires, &self.selections),
            wires,
            outputs: variant.outputs.clone(),
        });
        Ok(Some(Spot::Instance(self.instances.len() - 1)))
    }
}

/// The metrics that decide what some wires read.
fn metrics(wires: &[Wire], selections: &[Selection]) -> Vec<Source> {
    let pointers = wires.iter().flat_map(|wire| wire.from.pointers());
    let mut found: Vec<usize> = pointers.flat_map(|pointer| pointer.selections()).collect();
    found.sort_unstable();
    found.dedup();
    let metrics = found.iter().flat_map(|n| &selections[*n].metrics);
    metrics.copied().collect()
}

/// Exclusions may only name axes that the stage has.
fn check_exclusions(
    pipeline: &Pipeline,
    decl: &StageDecl,
    axes: &StageAxes,
) -> Result<(), Diagnostic> {
    for exclusion in &decl.except {
        for (axis, _) in &exclusion.parts {
            if !axes.own.contains(axis) {
                let name = &pipeline.axes[*axis].name;
                let own = axes
                    .own
                    .iter()
                    .map(|axis| pipeline.axes[*axis].name.as_str());
                let own: Vec<&str> = own.collect();
                let help = match own.is_empty() {
                    true => format!("`{}` has no axes", decl.name),
                    false => format!("axes of `{}`: {}", decl.name, own.join(", ")),
                };
                return Err(Diagnostic::new(format!(
                    "`{}` does not have the axis `{name}`",
                    decl.name
                ))
                .at(exclusion.span, "so this leaves nothing out")
                .help(help));
            }
        }
    }
    Ok(())
}

/// What no instance of the stage has taken notice of.
fn check_seen(pipeline: &Pipeline, decl: &StageDecl, seen: &Seen) -> Result<(), Diagnostic> {
    if let Some(n) = seen.excluded.iter().position(|hit| !hit) {
        return Err(Diagnostic::new("this exclusion leaves nothing out")
            .at(decl.except[n].span, "")
            .help("remove it, or correct its values"));
    }
    if let Some(n) = seen.applied.iter().position(|applied| !applied) {
        let entry = &decl.changes[n].entry;
        return Err(Diagnostic::new(format!(
            "`{}.{}` would have no effect: no instance of `{}` has this parameter",
            decl.name, entry.key, decl.name
        ))
        .at(entry.key_span, ""));
    }
    let unread = seen.unread.iter().find(|port| !seen.read.contains(port));
    // Points that an overlay has left out may be those that read it.
    let whole = |(axis, _): &(usize, _)| pipeline.axes[*axis].left_out.is_empty();
    if let Some(port) = unread.filter(|_| decl.with.iter().all(whole)) {
        let input = decl.inputs.iter().find(|input| input.port == *port);
        let span = input.map_or(decl.span, |input| input.span);
        return Err(
            Diagnostic::new(format!("`{}` does not read the input `{port}`", decl.name))
                .at(span, "no instance of it does")
                .help("remove it"),
        );
    }
    Ok(())
}

/// Exclusions must leave something of the stage, and of every value, unless they name nothing but the value: then it is
/// returned, and some other stage must have it.
fn check_left(
    pipeline: &Pipeline,
    decl: &StageDecl,
    placed: &Placed,
) -> Result<Vec<(usize, usize, Diagnostic)>, Diagnostic> {
    if placed.at.iter().all(Option::is_none) {
        return Err(Diagnostic::new(format!("`{}` has no instances", decl.name))
            .at(decl.span, "all of them, or of what it reads, are excluded"));
    }
    let Some(exclusion) = decl.except.first() else {
        return Ok(Vec::new());
    };
    let mut whole = Vec::new();
    for axis in &placed.axes {
        // Of some values there is nothing because what the stage reads does not have them: that is no slip here.
        let mut left = vec![false; pipeline.axes[*axis].values.len()];
        for (n, spot) in placed.at.iter().enumerate() {
            let point = point(n, &placed.axes, &pipeline.axes);
            let excluded = || decl.except.iter().any(|except| except.matches(&point));
            if spot.is_some() || !excluded() {
                left[value_at(&point, *axis)] = true;
            }
        }
        for value in (0..left.len()).filter(|value| !left[*value]) {
            let problem = nothing_left(&pipeline.axes[*axis], value, decl, exclusion);
            match decl.except.iter().any(|except| except.is_of(*axis, value)) {
                true => whole.push((*axis, value, problem)),
                false => return Err(problem),
            }
        }
    }
    Ok(whole)
}

fn nothing_left(axis: &Axis, value: usize, decl: &StageDecl, exclusion: &Exclusion) -> Diagnostic {
    Diagnostic::new(format!(
        "`{}` has no instance with {} = {}",
        decl.name, axis.name, axis.values[value]
    ))
    .at(exclusion.span, "exclusions leave none")
    .help(format!(
        "take the value out of axis `{}`, or exclude less",
        axis.name
    ))
}
