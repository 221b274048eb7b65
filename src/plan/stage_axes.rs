//! Which axes a stage has, and which of its inputs' it gathers: collects by `over`, or chooses along by `select`.

use super::grid::Placed;
use crate::config::{Over, Pipeline, Select, StageDecl};
use crate::diagnostic::{Diagnostic, Span};

/// The axes of a stage.
pub struct StageAxes {
    /// Those that multiply it, in order.
    pub own: Vec<usize>,
    /// Those of its inputs that it gathers, in order.
    pub gathered: Vec<usize>,
}

/// A stage's axes: those that decide its keys and those of all that it may read, less what it gathers.
pub fn stage_axes(
    pipeline: &Pipeline,
    decl: &StageDecl,
    placed: &[Option<Placed>],
    problems: &mut Vec<Diagnostic>,
) -> StageAxes {
    let of = |stage: usize| match &placed[stage] {
        Some(placed) => placed.axes.as_slice(),
        None => &[],
    };
    let mut all = decl.axes.clone();
    // The metric of `select` is not an input.
    for read in decl.reads.iter().filter(|read| read.port.is_some()) {
        all.extend_from_slice(of(read.stage));
    }
    all.sort_unstable();
    all.dedup();
    let listed: &[(usize, Span)] = match &decl.select {
        Some(select) => &select.over,
        None => decl.over_listed(),
    };
    for (axis, span) in listed {
        if !all.contains(axis) {
            let name = &pipeline.axes[*axis].name;
            problems.push(
                Diagnostic::new(format!("no input of `{}` has the axis `{name}`", decl.name))
                    .at(*span, "")
                    .help(format!("mention ${{{name}}} in a stage that it reads")),
            );
        }
    }
    let gathered: Vec<usize> = match (&decl.over, &decl.select) {
        (Over::Rest, None) => {
            let ours = |axis: &usize| decl.axes.contains(axis);
            let ablates = |axis: &usize| pipeline.axes[*axis].is_ablation();
            let rest = all.iter().filter(|axis| !ours(axis) && !ablates(axis));
            rest.copied().collect()
        }
        _ => listed.iter().map(|(axis, _)| *axis).collect(),
    };
    all.retain(|axis| !gathered.contains(axis));
    if let Some(select) = &decl.select {
        check_metric(
            pipeline,
            decl,
            select,
            of(select.metric.stage),
            &all,
            problems,
        );
    }
    StageAxes { own: all, gathered }
}

/// The metric must tell the candidates apart, and nothing else.
fn check_metric(
    pipeline: &Pipeline,
    decl: &StageDecl,
    select: &Select,
    metric: &[usize],
    own: &[usize],
    problems: &mut Vec<Diagnostic>,
) {
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
        if !own.contains(axis) && !select.over.iter().any(|(over, _)| over == axis) {
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
