//! Points of axes: all combinations of values, and where a stage's instances are among them.

use std::sync::Arc;

use store::Value;

use super::instance::{Instance, Pointer, Source};
use crate::config::{Axis, Reference, StageDecl};
use crate::diagnostic::{Diagnostic, nearest};

/// Axes in order, each with the position of its value.
pub type Point = Vec<(usize, usize)>;

/// The n-th combination of values of some axes, the last axis fastest.
pub fn point(mut n: usize, axes: &[usize], all: &[Axis]) -> Point {
    let mut point: Point = axes.iter().map(|axis| (*axis, 0)).collect();
    for (axis, value) in point.iter_mut().rev() {
        let len = all[*axis].values.len();
        *value = n % len;
        n /= len;
    }
    point
}

/// How many combinations of values some axes have.
pub fn combinations(axes: &[usize], all: &[Axis]) -> usize {
    let each = axes.iter().map(|axis| all[*axis].values.len());
    each.fold(1, usize::saturating_mul)
}

/// The position of an axis's value.
pub fn value_at(point: &[(usize, usize)], axis: usize) -> usize {
    let found = point.iter().find(|(a, _)| *a == axis);
    found.expect("a stage has the axes of what it reads").1
}

/// A stage's place among the instances.
pub struct Placed {
    /// Its axes in order.
    pub axes: Vec<usize>,
    /// What is at each combination of their values; nothing where it was left out.
    pub at: Vec<Option<Spot>>,
}

/// What a stage has at a point.
#[derive(Clone)]
pub enum Spot {
    /// An instance.
    Instance(usize),
    /// The best of several, by a selection.
    Best(usize, Arc<[Spot]>),
}

impl Placed {
    /// What is at a point, where `extra` has the values of axes that the reader does not have.
    pub fn get(
        &self,
        point: &[(usize, usize)],
        extra: &[(usize, usize)],
        all: &[Axis],
    ) -> Option<&Spot> {
        let at = self.axes.iter().fold(0, |at, axis| {
            let value = match extra.iter().find(|(a, _)| a == axis) {
                Some((_, value)) => *value,
                None => value_at(point, *axis),
            };
            at * all[*axis].values.len() + value
        });
        self.at[at].as_ref()
    }
}

impl Spot {
    /// The output of it that a reference names.
    pub fn output(&self, from: &Reference, instances: &[Instance]) -> Result<Pointer, Diagnostic> {
        match self {
            Spot::Instance(instance) => {
                let output = output(from, &instances[*instance])?;
                Ok(Pointer::Made(Source {
                    instance: *instance,
                    output,
                }))
            }
            Spot::Best(selection, of) => {
                let of = of.iter().map(|spot| spot.output(from, instances));
                Ok(Pointer::Best {
                    selection: *selection,
                    of: of.collect::<Result<_, _>>()?,
                })
            }
        }
    }
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

/// `name` or `name[axis=value]`.
pub fn label(decl: &StageDecl, point: &[(usize, usize)], axes: &[Axis]) -> String {
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
