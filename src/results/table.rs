//! Tables of references: the outputs of one instance, or of several as one table with their axes as columns.

use arrow::record_batch::RecordBatch;
use stages::Failure;
use store::{Digest, Output, Store, Value};

use super::find::find_table;
use super::recorded::Recorded;
use super::reference::axes;
use crate::diagnostic::Diagnostic;
use crate::plan::{Plan, Source};

/// Why stored outputs cannot be read as one table.
pub enum TableError {
    /// One cannot be read.
    Store(store::Error),
    /// They do not fit together.
    Mismatch(Failure),
}

impl From<store::Error> for TableError {
    fn from(error: store::Error) -> TableError {
        TableError::Store(error)
    }
}

/// Several instances as one table with their axes as columns, as a stage with `over` sees them.
pub fn of_plan(
    plan: &Plan<'_>,
    store: &Store,
    found: &[(Source, Digest)],
) -> Result<RecordBatch, TableError> {
    let mut parts = Vec::with_capacity(found.len());
    for (source, digest) in found {
        parts.push((*source, store.read(digest)?));
    }
    together(plan, parts).map_err(TableError::Mismatch)
}

/// The same of tables at hand; there is at least one.
pub fn together(
    plan: &Plan<'_>,
    parts: Vec<(Source, RecordBatch)>,
) -> Result<RecordBatch, Failure> {
    if let [(_, table)] = &parts[..] {
        return Ok(table.clone());
    }
    let point = &plan.instances[parts[0].0.instance].point;
    let axes: Vec<&str> = point
        .iter()
        .map(|(a, _)| plan.pipeline.axes[*a].name.as_str())
        .collect();
    let rows = parts.into_iter().map(|(source, table)| {
        let point = plan.instances[source.instance].point.iter();
        let values = point.map(|(axis, value)| plan.pipeline.axes[*axis].values[*value].clone());
        (plan.source_label(source), values.collect(), table)
    });
    stages::collect(&axes, &rows.collect::<Vec<_>>())
}

/// Why there is no table.
pub enum NoTable {
    /// The run has none of that name; what to do about it.
    Unknown(String, Vec<String>),
    /// It has one, and it is not what was made.
    Unusable(String),
}

impl From<NoTable> for String {
    fn from(no: NoTable) -> String {
        match no {
            NoTable::Unknown(why, _) | NoTable::Unusable(why) => why,
        }
    }
}

/// The outputs of a recorded run that a reference names, one for each instance, with their steps.
pub fn outputs<'a>(
    recorded: &'a Recorded,
    result: &str,
) -> Result<Vec<(usize, &'a Output)>, NoTable> {
    let unknown = |d: Diagnostic| NoTable::Unknown(d.title().to_owned(), d.helps().to_vec());
    let steps = recorded.steps_of(result).map_err(unknown)?;
    for at in steps {
        let label = &recorded.steps[at].label;
        if let Some(why) = recorded.altered.get(label) {
            let why = format!("the stored result of `{label}` is altered ({why})");
            return Err(NoTable::Unusable(why));
        }
        if recorded.steps[at].outputs().is_empty() {
            let why = format!("`{label}` has no result in this run");
            return Err(NoTable::Unknown(why, Vec::new()));
        }
    }
    let found = find_table(recorded, result).map_err(unknown)?;
    let output = |source: Source| &recorded.steps[source.instance].outputs()[source.output];
    Ok(found
        .into_iter()
        .map(|source| (source.instance, output(source)))
        .collect())
}

/// The table of these outputs, several instances as one with their axes as first columns, and the
/// step of the first. Or why there is none.
pub fn of_run(
    store: &Store,
    recorded: &Recorded,
    result: &str,
) -> Result<(RecordBatch, usize), NoTable> {
    let found = outputs(recorded, result)?;
    let mut parts = Vec::with_capacity(found.len());
    for (at, output) in &found {
        let step = &recorded.steps[*at];
        let label = &step.label;
        let table = store.peek(&output.digest).map_err(|error| {
            NoTable::Unusable(format!("the stored result of `{label}`: {error}"))
        })?;
        parts.push((label.clone(), axes(&step.label), table));
    }
    let first = found[0].0;
    if let [(_, _, table)] = &parts[..] {
        return Ok((table.clone(), first));
    }
    let names: Vec<&str> = parts[0].1.iter().map(|(name, _)| *name).collect();
    let mut columns: Vec<std::vec::IntoIter<Value>> = (0..names.len())
        .map(|n| {
            let texts: Vec<&str> = parts
                .iter()
                .map(|part| part.1.get(n).map_or("", |(_, v)| v.as_str()))
                .collect();
            values(&texts).into_iter()
        })
        .collect();
    let rows: Vec<(String, Vec<Value>, RecordBatch)> = parts
        .iter()
        .map(|(label, _, table)| {
            let values = columns.iter_mut().filter_map(Iterator::next).collect();
            (label.clone(), values, table.clone())
        })
        .collect();
    let together = stages::collect(&names, &rows);
    let together = together.map_err(|failure| NoTable::Unknown(failure.message, Vec::new()))?;
    Ok((together, first))
}

/// The values of one axis, all of one type, as in the pipeline file.
fn values(texts: &[&str]) -> Vec<Value> {
    let all = |read: fn(&str) -> Option<Value>| texts.iter().map(|text| read(text)).collect();
    let whole: Option<Vec<Value>> = all(|text| text.parse().ok().map(Value::Int));
    let number = || all(|text| text.parse().ok().map(Value::Float));
    let flag = || all(|text| text.parse().ok().map(Value::Bool));
    let words = || {
        texts
            .iter()
            .map(|text| Value::Text((*text).to_owned()))
            .collect()
    };
    whole.or_else(number).or_else(flag).unwrap_or_else(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_one_type() {
        assert_eq!(values(&["1", "3"]), [Value::Int(1), Value::Int(3)]);
        assert_eq!(
            values(&["0.5", "1"]),
            [Value::Float(0.5), Value::Float(1.0)]
        );
        assert_eq!(
            values(&["true", "false"]),
            [Value::Bool(true), Value::Bool(false)]
        );
        let words = ["1", "b"].map(|word| Value::Text(word.to_owned()));
        assert_eq!(values(&["1", "b"]), words);
    }
}
