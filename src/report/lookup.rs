//! A result of a recorded run by the name that people give it. Needs no pipeline file: axes are
//! read off the names of the instances.

use arrow::record_batch::RecordBatch;
use store::{Output, Store, Value};

use super::gather::{Recorded, Step};
use crate::results;

/// Why there is no table.
pub enum NoTable {
    /// The run has none of that name.
    Unknown(String),
    /// It has one, and it is not what was made.
    Unusable(String),
}

impl From<NoTable> for String {
    fn from(no: NoTable) -> String {
        match no {
            NoTable::Unknown(why) | NoTable::Unusable(why) => why,
        }
    }
}

/// The outputs that `stage`, `stage.output` or `stage[axis=value].output` names, one for each
/// instance, with their steps.
pub fn outputs<'a>(
    recorded: &'a Recorded,
    result: &str,
) -> Result<Vec<(usize, &'a Output)>, NoTable> {
    let (target, output) = results::split(result);
    let named = |step: &Step| step.label == target || step.name() == target;
    let mut found = Vec::new();
    for (at, step) in recorded.steps.iter().enumerate() {
        if !named(step) {
            continue;
        }
        let label = &step.label;
        if let Some(why) = recorded.altered.get(label) {
            let why = format!("the stored result of `{label}` is altered ({why})");
            return Err(NoTable::Unusable(why));
        }
        let one = match output {
            Some(name) => step.output(name),
            None => step.outputs().first(),
        };
        let one = one.ok_or_else(|| {
            NoTable::Unknown(match output {
                Some(name) => format!("`{label}` has no output `{name}`"),
                None => format!("`{label}` has no result in this run"),
            })
        })?;
        found.push((at, one));
    }
    match found.is_empty() {
        true => {
            let run = recorded.run.id;
            let why = format!("run {run} has no stage `{target}`");
            Err(NoTable::Unknown(why))
        }
        false => Ok(found),
    }
}

/// The table of these outputs, several instances as one with their axes as first columns, and the
/// step of the first. Or why there is none.
pub fn table(
    store: &Store,
    recorded: &Recorded,
    result: &str,
) -> Result<(RecordBatch, usize), NoTable> {
    let found = outputs(recorded, result)?;
    let mut parts = Vec::with_capacity(found.len());
    for (at, output) in &found {
        let step = &recorded.steps[*at];
        let label = &step.label;
        let table = store.look(&output.digest).map_err(|error| {
            NoTable::Unusable(format!("the stored result of `{label}`: {error}"))
        })?;
        parts.push((label.clone(), axes(step), table));
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
    let together = together.map_err(|failure| NoTable::Unknown(failure.message))?;
    Ok((together, first))
}

/// The axes of an instance with their values, as its name has them. A value with signs of its
/// own is written in quotes there.
fn axes(step: &Step) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = step.axes();
    while let Some((name, after)) = rest.split_once('=') {
        let mut quoted = serde_json::Deserializer::from_str(after).into_iter::<String>();
        let (value, used) = match quoted.next() {
            Some(Ok(value)) => (value, quoted.byte_offset()),
            _ => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].to_owned(), end)
            }
        };
        found.push((name, value));
        rest = after[used..].trim_start_matches(',');
    }
    found
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
    fn axes_are_read_off_a_name() {
        let step = |label: &str| Step {
            label: label.to_owned(),
            status: store::Status::Ran,
            wall: std::time::Duration::ZERO,
            execution: None,
            reads: Vec::new(),
        };
        let read = |label: &str| {
            let step = step(label);
            let axes = axes(&step).into_iter();
            axes.map(|(name, value)| format!("{name} {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(read("s[n=3,lr=0.5]"), ["n 3", "lr 0.5"]);
        assert_eq!(
            read(r#"s[a="x, [\"y\"]=",b=plain]"#),
            [r#"a x, ["y"]="#, "b plain"]
        );
        assert_eq!(read("s"), Vec::<String>::new());
    }

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
