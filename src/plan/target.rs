//! Which instances are wanted: the targets of the command line and all that they read.

use crate::diagnostic::{Diagnostic, nearest};

use super::Plan;

/// For each instance, whether the targets need it. No targets: everything.
pub fn wanted(plan: &Plan<'_>, targets: &[String]) -> Result<Vec<bool>, Vec<Diagnostic>> {
    if targets.is_empty() {
        return Ok(vec![true; plan.instances.len()]);
    }
    let mut wanted = vec![false; plan.instances.len()];
    let mut problems = Vec::new();
    for target in targets {
        match matching(plan, target) {
            Ok(found) => found.into_iter().for_each(|n| wanted[n] = true),
            Err(problem) => problems.push(problem),
        }
    }
    reach(plan, &mut wanted);
    if problems.is_empty() {
        Ok(wanted)
    } else {
        Err(problems)
    }
}

/// Adds all that the wanted instances read.
pub fn reach(plan: &Plan<'_>, wanted: &mut [bool]) {
    // Readers come after what they read, so one pass from the end reaches everything.
    for n in (0..wanted.len()).rev() {
        if wanted[n] {
            for source in plan.instances[n].sources() {
                wanted[source.instance] = true;
            }
        }
    }
}

/// The instances that `stage` or `stage[axis=value,…]` names.
pub fn matching(plan: &Plan<'_>, target: &str) -> Result<Vec<usize>, Diagnostic> {
    let (name, filter) = match target.split_once('[') {
        Some((name, filter)) => (name, filter.strip_suffix(']').unwrap_or(filter)),
        None => (target, ""),
    };
    let stages = &plan.pipeline.stages;
    let Some(stage) = stages.iter().position(|stage| stage.name == name) else {
        let names = stages.iter().map(|stage| stage.name.as_str());
        return Err(Diagnostic::new(format!("no stage `{name}`"))
            .maybe_help(nearest(name, names))
            .help("`ablate graph` shows the stages of the pipeline"));
    };
    let all = plan.of_stage[stage].clone();
    if filter.is_empty() {
        return Ok(all.collect());
    }
    let found: Vec<usize> = all
        .clone()
        .filter(|n| {
            let label = &plan.instances[*n].label;
            let own = &label[name.len()..];
            let own = own.trim_start_matches('[').trim_end_matches(']');
            filter
                .split(',')
                .all(|part| own.split(',').any(|mine| mine == part.trim()))
        })
        .collect();
    if found.is_empty() {
        let labels: Vec<_> = all
            .take(6)
            .map(|n| plan.instances[n].label.as_str())
            .collect();
        return Err(Diagnostic::new(format!("no instance `{target}`"))
            .help(format!("instances of `{name}`: {}", labels.join(", "))));
    }
    Ok(found)
}
