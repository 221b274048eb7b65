//! One stage's parameters: `${axis}` substituted, types checked, defaults written out.

use std::collections::BTreeMap;

use stages::{Param, Presence, Stage, Type};
use store::{Params, Value};

use super::axis::Axis;
use super::entries::unknown_key;
use super::tree::{Entry, Node, Raw};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// The value of each axis that a stage instance has, by axis name.
pub type Bindings<'a> = BTreeMap<&'a str, &'a Value>;

/// Keys that every stage has beside its kind's parameters.
pub const COMMON: [&str; 10] = [
    "kind",
    "inputs",
    "over",
    "select",
    "seed",
    "with",
    "except",
    "like",
    "pick",
    "resources",
];

/// Checks the parameters of one stage instance.
pub fn check_params(
    kind: &dyn Stage,
    entries: &[Entry],
    bindings: &Bindings<'_>,
    stage_span: Span,
) -> Result<Params, Vec<Diagnostic>> {
    let description = kind.describe();
    let mut problems = Vec::new();
    let mut params = Params::new();
    for entry in entries {
        let Some(param) = description.params.iter().find(|p| p.name == entry.key) else {
            let names = description.params.iter().map(|p| p.name).chain(COMMON);
            let place = format!("in a stage of kind `{}`", description.kind);
            let all = format!("`ablate kinds {}` describes every key", description.kind);
            problems.push(unknown_key(entry, &place, names).help(all));
            continue;
        };
        match typed(&entry.node, param, bindings) {
            Ok(value) => drop(params.insert(entry.key.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    for param in description.params {
        if entries.iter().any(|entry| entry.key == param.name) {
            continue;
        }
        if matches!(param.presence, Presence::Required) {
            problems.push(
                Diagnostic::new(format!("`{}` needs `{}`", description.kind, param.name))
                    .at(stage_span, "")
                    .help(format!(
                        "{} = {}: {}",
                        param.name,
                        param.ty.name(),
                        param.help
                    )),
            );
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    stages::complete(kind, &params).map_err(|error| {
        let entry = entries.iter().find(|entry| entry.key == error.param);
        let span = entry.map_or(stage_span, |entry| entry.node.span);
        let problem = Diagnostic::new(error.message).at(span, "");
        vec![problem.maybe_help(error.help)]
    })
}

/// The value with its axes substituted, if it has the parameter's type.
fn typed(node: &Node, param: &Param, bindings: &Bindings<'_>) -> Result<Value, Diagnostic> {
    let value = match (param.ty, &node.raw) {
        (Type::Query, Raw::Scalar(Value::Text(text))) => Value::Text(into_sql(text, bindings)),
        (Type::Texts | Type::TextTable, _) => written_out(node, fill(node, bindings)),
        _ => fill(node, bindings),
    };
    let wrong = |at: &Node, expected: &str, got: &Value| {
        Diagnostic::new(format!("`{}` must be {}", param.name, param.ty.name())).at(
            at.span,
            format!("expected {expected}, this is {}", got.type_name()),
        )
    };
    let each = |expected: &'static str, fits: fn(&Value) -> bool| match (&value, &node.raw) {
        (Value::List(values), Raw::List(nodes)) => {
            match values.iter().zip(nodes).find(|(value, _)| !fits(value)) {
                Some((value, at)) => Err(wrong(at, expected, value)),
                None => Ok(()),
            }
        }
        _ => Err(wrong(node, "a list", &value)),
    };
    match param.ty {
        Type::Bool if matches!(value, Value::Bool(_)) => {}
        Type::Int if matches!(value, Value::Int(_)) => {}
        Type::Text | Type::Query if matches!(value, Value::Text(_)) => {}
        Type::Table if matches!(value, Value::Table(_)) => {}
        Type::Float => match value {
            Value::Float(_) => {}
            Value::Int(int) => return Ok(Value::Float(int as f64)),
            other => return Err(wrong(node, "a float", &other)),
        },
        Type::Texts | Type::Files => each("a string", |value| matches!(value, Value::Text(_)))?,
        Type::Ints => each("an integer", |value| matches!(value, Value::Int(_)))?,
        Type::Rows => each("a table", |value| matches!(value, Value::Table(_)))?,
        Type::TextTable => match (&value, &node.raw) {
            (Value::Table(values), Raw::Table(table)) => {
                for entry in &table.entries {
                    let value = &values[&entry.key];
                    if !matches!(value, Value::Text(_)) {
                        return Err(wrong(&entry.node, "a string", value));
                    }
                }
            }
            _ => return Err(wrong(node, "a table", &value)),
        },
        Type::Bool | Type::Int | Type::Text | Type::Query | Type::Table => {
            return Err(wrong(node, param.ty.name(), &value));
        }
    }
    Ok(value)
}

/// The value with every `${axis}` replaced. A string that is nothing but `${axis}` becomes the
/// axis's value with its type; inside a longer string the value is written out.
pub fn fill(node: &Node, bindings: &Bindings<'_>) -> Value {
    match &node.raw {
        Raw::Scalar(Value::Text(text)) => substitute(text, bindings),
        Raw::Scalar(value) => value.clone(),
        Raw::List(items) => Value::List(items.iter().map(|item| fill(item, bindings)).collect()),
        Raw::Table(table) => Value::Table(
            table
                .entries
                .iter()
                .map(|entry| (entry.key.clone(), fill(&entry.node, bindings)))
                .collect(),
        ),
    }
}

fn substitute(text: &str, bindings: &Bindings<'_>) -> Value {
    let parts = split(text);
    if let [Part::Axis(name, _)] = parts.as_slice()
        && let Some(value) = bindings.get(name)
    {
        return (*value).clone();
    }
    let mut filled = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Axis(name, whole) => match bindings.get(name) {
                Some(Value::Text(text)) => filled.push_str(text),
                Some(value) => filled.push_str(&value.to_string()),
                None => filled.push_str(whole),
            },
        }
    }
    Value::Text(filled)
}

/// The query with its axes filled in. A negative number is put in parentheses, because `x -${n}`
/// would otherwise begin a comment; inside a quoted literal a text's quotes are doubled.
fn into_sql(text: &str, bindings: &Bindings<'_>) -> String {
    let mut sql = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    for part in split(text) {
        match part {
            Part::Text(text) => {
                for c in text.chars() {
                    quote = match quote {
                        None if c == '\'' || c == '"' => Some(c),
                        Some(open) if c == open => None,
                        same => same,
                    };
                }
                sql.push_str(text);
            }
            Part::Axis(name, whole) => match (bindings.get(name), quote) {
                (Some(Value::Text(text)), Some(open)) => {
                    sql.push_str(&text.replace(open, &format!("{open}{open}")));
                }
                (Some(Value::Text(text)), None) => sql.push_str(text),
                (Some(value), None) if value.to_string().starts_with('-') => {
                    sql.push_str(&format!("({value})"));
                }
                (Some(value), _) => sql.push_str(&value.to_string()),
                (None, _) => sql.push_str(whole),
            },
        }
    }
    sql
}

/// A number that came from a lone `${axis}`, as the text that it would be in a longer string:
/// arguments and environment variables are texts.
fn written_out(node: &Node, value: Value) -> Value {
    match (&node.raw, value) {
        (
            Raw::Scalar(Value::Text(_)),
            value @ (Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        ) => Value::Text(value.to_string()),
        (Raw::List(nodes), Value::List(values)) => {
            let pairs = nodes.iter().zip(values);
            Value::List(
                pairs
                    .map(|(node, value)| written_out(node, value))
                    .collect(),
            )
        }
        (Raw::Table(table), Value::Table(mut values)) => {
            for entry in &table.entries {
                if let Some(value) = values.remove(&entry.key) {
                    values.insert(entry.key.clone(), written_out(&entry.node, value));
                }
            }
            Value::Table(values)
        }
        (_, value) => value,
    }
}

/// Which axes the strings of a value mention. An unknown one is an error.
pub fn mentions(
    node: &Node,
    axes: &[Axis],
    found: &mut Vec<usize>,
    problems: &mut Vec<Diagnostic>,
) {
    match &node.raw {
        Raw::Scalar(Value::Text(text)) => {
            for part in split(text) {
                let Part::Axis(name, _) = part else { continue };
                match axes.iter().position(|axis| axis.name == name) {
                    Some(axis) if !found.contains(&axis) => found.push(axis),
                    Some(_) => {}
                    None => {
                        let names = axes.iter().map(|axis| axis.name.as_str());
                        problems.push(
                            Diagnostic::new(format!("no axis `{name}`"))
                                .at(node.span, nearest(name, names).unwrap_or_default())
                                .help(format!(
                                    "list its values under [axes], or write $${{{name}}} \
                                     for the text itself"
                                )),
                        );
                    }
                }
            }
        }
        Raw::Scalar(_) => {}
        Raw::List(items) => {
            for item in items {
                mentions(item, axes, found, problems);
            }
        }
        Raw::Table(table) => {
            for entry in &table.entries {
                mentions(&entry.node, axes, found, problems);
            }
        }
    }
}

enum Part<'a> {
    Text(&'a str),
    /// The name, and the whole of `${name}`.
    Axis(&'a str, &'a str),
}

/// Cuts a string at its `${name}`; `$${` stands for the text `${`.
fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            parts.push(Part::Text(&rest[..at - 1]));
            parts.push(Part::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        parts.push(Part::Axis(&rest[at + 2..at + end], &rest[at..=at + end]));
        rest = &rest[at + end + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Value {
        let (lr, name) = (Value::Float(0.5), Value::Text("a b".into()));
        substitute(text, &Bindings::from([("lr", &lr), ("name", &name)]))
    }

    #[test]
    fn a_lone_axis_keeps_its_type_and_others_are_written_out() {
        assert_eq!(filled("${lr}"), Value::Float(0.5));
        assert_eq!(filled("x * ${lr}"), Value::Text("x * 0.5".into()));
        assert_eq!(filled("${name}/${lr}"), Value::Text("a b/0.5".into()));
        assert_eq!(filled("$${lr} ${"), Value::Text("${lr} ${".into()));
        assert_eq!(filled(""), Value::Text(String::new()));
    }

    #[test]
    fn values_stay_one_value_in_sql() {
        let (minus, name) = (Value::Int(-1), Value::Text("it's --".into()));
        let bindings = Bindings::from([("n", &minus), ("name", &name)]);
        let sql = |text| into_sql(text, &bindings);
        assert_eq!(sql("SELECT x -${n} FROM t"), "SELECT x -(-1) FROM t");
        assert_eq!(sql("SELECT '${n}' AS n"), "SELECT '-1' AS n");
        assert_eq!(
            sql("SELECT '${name}' AS n, ${n}"),
            "SELECT 'it''s --' AS n, (-1)"
        );
        assert_eq!(
            sql("SELECT \"${name}\" FROM t"),
            "SELECT \"it's --\" FROM t"
        );
    }
}
