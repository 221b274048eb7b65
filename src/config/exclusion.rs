//! `except = [{ axis = value, other = [values] }]`: combinations of values that a stage does not have.

use store::Value;

use super::axis::Axis;
use super::entries::{unknown_key, wrong_type};
use super::tree::{Entry, Node, Raw};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// Instances with all of these values are left out.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// Each axis with the positions of the values.
    pub parts: Vec<(usize, Vec<usize>)>,
    /// Where it is written.
    pub span: Span,
}

impl Exclusion {
    /// Whether it names this value of an axis and no other axis.
    pub fn is_of(&self, axis: usize, value: usize) -> bool {
        matches!(&self.parts[..], [(only, values)] if *only == axis && values.contains(&value))
    }

    /// Whether it leaves out the instance at a point.
    pub fn matches(&self, point: &[(usize, usize)]) -> bool {
        self.parts.iter().all(|(axis, values)| {
            let at = point.iter().find(|(known, _)| known == axis);
            at.is_some_and(|(_, value)| values.contains(value))
        })
    }

    /// Whether it leaves out all that another does.
    fn covers(&self, other: &Exclusion) -> bool {
        self.parts.iter().all(|(axis, values)| {
            let same = other.parts.iter().find(|(known, _)| known == axis);
            same.is_some_and(|(_, theirs)| theirs.iter().all(|value| values.contains(value)))
        })
    }
}

/// The exclusions of a stage. One that names only values that an overlay has left out matches nothing, and is
/// dropped.
pub(super) fn read(entry: &Entry, axes: &[Axis], problems: &mut Vec<Diagnostic>) -> Vec<Exclusion> {
    let Raw::List(items) = &entry.node.raw else {
        problems.push(wrong_type(entry, "a list: [{ axis = \"value\" }]"));
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in items {
        let Raw::Table(table) = &item.raw else {
            problems.push(
                Diagnostic::new("an exclusion must be a table of axes")
                    .at(item.span, format!("this is {}", item.type_name()))
                    .help("except = [{ axis = \"value\", other = [\"values\"] }]"),
            );
            continue;
        };
        if table.entries.is_empty() {
            problems.push(
                Diagnostic::new("an exclusion without an axis would leave out everything")
                    .at(item.span, "")
                    .help("name the values: { axis = \"value\" }"),
            );
            continue;
        }
        let parts = table.entries.iter().map(|entry| part(entry, axes));
        match parts.collect::<Result<Vec<_>, _>>() {
            Ok(parts) if parts.iter().any(|(_, values)| values.is_empty()) => {}
            Ok(parts) if found.iter().any(|known: &Exclusion| known.parts == parts) => {
                let problem = Diagnostic::new("an exclusion is listed twice");
                problems.push(problem.at(item.span, "already listed"));
            }
            Ok(parts) => {
                let one = Exclusion {
                    parts,
                    span: item.span,
                };
                // Fewer values, as a profile may leave, can make one cover another.
                let whole = |exclusion: &Exclusion| {
                    let mut axes_of = exclusion.parts.iter().map(|(axis, _)| &axes[*axis]);
                    axes_of.all(|axis| axis.left_out.is_empty())
                };
                let covering = found
                    .iter()
                    .find(|known| known.covers(&one) && whole(known));
                if let Some(covering) = covering {
                    problems.push(
                        Diagnostic::new("an exclusion leaves out nothing more")
                            .at(one.span, "")
                            .at(covering.span, "this one leaves all of it out"),
                    );
                }
                found.push(one);
            }
            Err(problem) => problems.push(problem),
        }
    }
    found
}

/// An axis and the positions of the named values, without those that an overlay has left out.
fn part(entry: &Entry, axes: &[Axis]) -> Result<(usize, Vec<usize>), Diagnostic> {
    let Some(at) = axes.iter().position(|axis| axis.name == entry.key) else {
        let names = axes.iter().map(|axis| axis.name.as_str());
        return Err(unknown_key(entry, "in `except`", names));
    };
    let axis = &axes[at];
    let nodes: &[Node] = match &entry.node.raw {
        Raw::List(nodes) => nodes,
        _ => std::slice::from_ref(&entry.node),
    };
    if nodes.is_empty() {
        let message = format!("an exclusion of no value of axis `{}`", axis.name);
        return Err(Diagnostic::new(message).at(entry.node.span, "leaves out nothing"));
    }
    let mut values = Vec::new();
    for node in nodes {
        let Raw::Scalar(value) = &node.raw else {
            let message = format!("a value of axis `{}` is {}", axis.name, node.type_name());
            return Err(Diagnostic::new(message).at(node.span, "must be one of its values"));
        };
        let same = |known: &Value| equal(known, value);
        match axis.values.iter().position(same) {
            Some(position) => values.push(position),
            None if axis.left_out.iter().any(same) => {}
            None => return Err(no_value(axis, value, node.span)),
        }
    }
    Ok((at, values))
}

fn no_value(axis: &Axis, value: &Value, span: Span) -> Diagnostic {
    let shown: Vec<String> = axis.values.iter().map(shown).collect();
    let hint = nearest(&self::shown(value), shown.iter().map(String::as_str));
    Diagnostic::new(format!("axis `{}` has no value {value}", axis.name))
        .at(span, hint.unwrap_or_default())
        .help(format!("its values: {}", shown.join(", ")))
}

fn shown(value: &Value) -> String {
    value.as_text().map_or(value.to_string(), str::to_owned)
}

/// Whether two values are the same, an integer and a float that are one number too.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            *int as f64 == *float
        }
        _ => a == b,
    }
}
