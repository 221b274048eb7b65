//! A result by the name that people give it: which instances, which output, and its table.
//! Knows nothing of what is cached.

use arrow::record_batch::RecordBatch;
use stages::Failure;
use store::{Digest, Store, Value};

use crate::diagnostic::{Diagnostic, nearest};
use crate::plan::{self, Plan, Source};

/// The outputs that `stage`, `stage.output` or `stage[axis=value].output` names, one for each
/// instance. Without an output's name the first is meant.
pub fn find(plan: &Plan<'_>, result: &str) -> Result<Vec<Source>, Diagnostic> {
    let (target, output) = split(result);
    let instances = plan::matching(plan, target)?.into_iter();
    let located = instances.map(|instance| {
        let output = position(plan, instance, output)?;
        Ok(Source { instance, output })
    });
    located.collect()
}

/// `stage[axis=0.5].output` has dots inside and outside of the brackets.
pub fn split(result: &str) -> (&str, Option<&str>) {
    let after = result.rfind(']').map_or(0, |at| at + 1);
    match result[after..].split_once('.') {
        Some((rest, output)) => (&result[..after + rest.len()], Some(output)),
        None => (result, None),
    }
}

fn position(plan: &Plan<'_>, n: usize, output: Option<&str>) -> Result<usize, Diagnostic> {
    let instance = &plan.instances[n];
    let Some(name) = output else { return Ok(0) };
    let found = instance.outputs.iter().position(|known| known == name);
    found.ok_or_else(|| {
        let known = instance.outputs.iter().map(String::as_str);
        Diagnostic::new(format!("`{}` has no output `{name}`", instance.label))
            .maybe_help(nearest(name, known))
            .help(format!("outputs: {}", instance.outputs.join(", ")))
    })
}

/// Why outputs that are there are no table.
pub enum Trouble {
    /// One cannot be read.
    Store(store::Error),
    /// They do not fit together.
    Apart(Failure),
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Trouble {
        Trouble::Store(error)
    }
}

/// Several instances as one table with their axes as columns, as a stage with `over` sees them.
pub fn together(
    plan: &Plan<'_>,
    store: &Store,
    found: &[(Source, Digest)],
) -> Result<RecordBatch, Trouble> {
    let mut rows = Vec::with_capacity(found.len());
    for (source, digest) in found {
        let point = plan.instances[source.instance].point.iter();
        let values: Vec<Value> = point
            .map(|(axis, value)| plan.pipeline.axes[*axis].values[*value].clone())
            .collect();
        rows.push((plan.source_label(*source), values, store.read(digest)?));
    }
    if let [(_, _, table)] = &rows[..] {
        return Ok(table.clone());
    }
    let point = &plan.instances[found[0].0.instance].point;
    let axes: Vec<&str> = point
        .iter()
        .map(|(a, _)| plan.pipeline.axes[*a].name.as_str())
        .collect();
    stages::collect(&axes, &rows).map_err(Trouble::Apart)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_output_follows_the_last_bracket() {
        assert_eq!(split("train"), ("train", None));
        assert_eq!(split("train.weights"), ("train", Some("weights")));
        assert_eq!(split("train[lr=0.5]"), ("train[lr=0.5]", None));
        assert_eq!(split("train[lr=0.5].w"), ("train[lr=0.5]", Some("w")));
    }
}
