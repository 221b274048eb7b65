//! `ablate compare A B` of two results with a row for each item: instance beside instance, item by item.

use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection;
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::inspect::items::{self, ComparedColumn, DRAWS};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan, Source};
use crate::results::columns::short;
use crate::results::find;
use crate::results::reference::{axes, parse};

/// Whether the pipeline has a stage that a text names.
pub fn is_result(global: &Global, text: &str) -> bool {
    let Ok(reference) = parse(text) else {
        return false;
    };
    let pipeline = global.pipeline();
    pipeline.is_ok_and(|it| it.stages.iter().any(|stage| stage.name == reference.stage))
}

/// Compares the results that two texts name.
pub fn compare(global: &Global, store: &Store, texts: [&str; 2]) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let first = find::find_table(&plan, texts[0])?;
    let second = find::find_table(&plan, texts[1])?;
    let pairs = paired(&plan, &first, &second, texts)?;
    let mut wanted = vec![false; plan.instances.len()];
    for source in pairs.iter().flatten() {
        wanted[source.instance] = true;
    }
    plan::reach(&plan, &mut wanted);
    let statuses = instance_statuses(&plan, &wanted, Some(store));
    let read = |source: &Source| match &statuses[source.instance] {
        InstanceStatus::Cached { outputs, .. } => Ok(store.read(&outputs[source.output])?),
        _ => Err(run_selection::unshown(
            global,
            &plan,
            &statuses,
            source.instance,
        )),
    };
    for pair in &pairs {
        let labels = [plan.source_label(pair[0]), plan.source_label(pair[1])];
        let [a, b] = [read(&pair[0])?, read(&pair[1])?];
        let found = items::compare([&a, &b]).map_err(|why| {
            let what = format!("`{}` and `{}` cannot be compared", labels[0], labels[1]);
            Diagnostic::new(format!("{what}: {why}"))
        })?;
        print(global, &labels, &found)?;
    }
    Ok(())
}

/// Instances that agree on the axes that both sides have and neither text names.
fn paired(
    plan: &Plan<'_>,
    first: &[Source],
    second: &[Source],
    texts: [&str; 2],
) -> Result<Vec<[Source; 2]>, Exit> {
    let named: Vec<String> = [parse(texts[0])?, parse(texts[1])?]
        .into_iter()
        .flat_map(|reference| reference.filters.into_iter().map(|(name, _)| name))
        .collect();
    let point = |source: &Source| {
        let mut point = axes(&plan.instances[source.instance].label);
        point.retain(|(axis, _)| !named.iter().any(|named| named == axis));
        point
    };
    let mut pairs = Vec::new();
    for a in first {
        let at = point(a);
        let fits = |b: &&Source| {
            let other = point(b);
            at.iter().all(|(axis, value)| {
                let same = other.iter().find(|(name, _)| name == axis);
                same.is_none_or(|(_, other)| other == value)
            })
        };
        let partners: Vec<&Source> = second.iter().filter(fits).collect();
        match partners[..] {
            [b] => pairs.push([*a, *b]),
            [] => {}
            [b, c, ..] => {
                let label = |source: &Source| plan.instances[source.instance].label.clone();
                let (a, b, c) = (label(a), label(b), label(c));
                let what = format!("`{a}` could be compared with `{b}` or `{c}`");
                return Err(Diagnostic::new(what).help("name one").into());
            }
        }
    }
    match pairs.is_empty() {
        false => Ok(pairs),
        true => {
            let what = format!(
                "no instances of `{}` and `{}` belong together",
                texts[0], texts[1]
            );
            Err(Diagnostic::new(what)
                .help("name instances: STAGE[axis=value]")
                .into())
        }
    }
}

fn print(global: &Global, labels: &[String; 2], found: &[ComparedColumn]) -> Result<(), Exit> {
    if global.json {
        out!(
            "{}",
            json!({ "first": labels[0], "second": labels[1], "columns": found, "draws": DRAWS })
        );
        return Ok(());
    }
    out!("{} beside {}", labels[0], labels[1]);
    if found.is_empty() {
        out!("  the same for every item");
    }
    for one in found {
        out!("  {}", line(one));
    }
    Ok(())
}

/// `success: 0.93 against 0.81, +0.12 [0.08, 0.16] over 300 items; …`
fn line(one: &ComparedColumn) -> String {
    let number = |x: f64| short(x);
    let sign = if one.difference.mean > 0.0 { "+" } else { "" };
    let (first, second) = (number(one.first), number(one.second));
    let by = number(one.difference.mean);
    let interval = one.difference.interval.iter();
    let interval: String = interval
        .map(|at| format!(" [{}, {}]", number(at.low), number(at.high)))
        .collect();
    let pairs = one.difference.pairs;
    let (p, test) = match &one.mcnemar {
        Some(test) => (Some(test.p), test.test),
        None => (one.difference.p, one.difference.test),
    };
    let only = one.mcnemar.iter().map(|test| {
        let (a, b) = (test.only_first, test.only_second);
        format!("; only the first on {a}, only the second on {b}")
    });
    let only: String = only.collect();
    let test: String = p
        .map(|p| format!("; {} ({test})", probability(p)))
        .into_iter()
        .collect();
    let name = &one.column;
    let pairs = plural(pairs, "item");
    format!("{name}: {first} against {second}, {sign}{by}{interval} over {pairs}{only}{test}")
}

fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}
