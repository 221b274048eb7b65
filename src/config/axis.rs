//! An axis: values, or named points, over which stages are multiplied.

use store::Value;

use super::tree::Entry;
use crate::diagnostic::Span;

/// Values over which stages are multiplied.
#[derive(Debug)]
pub struct Axis {
    /// Its name, as in `${name}`.
    pub name: String,
    /// Its values: scalars of one type; of an axis of points, their names.
    pub values: Vec<Value>,
    /// Where each value is written.
    pub value_spans: Vec<Span>,
    /// Where the name is written.
    pub span: Span,
    /// What each value sets, if the values are names of points.
    pub points: Option<Vec<Point>>,
    /// The column that it becomes where instances are collected: its name, or `seed` if its values are replicates.
    pub column: String,
    /// Values in the file that an overlay leaves out: exclusions may still name them.
    pub left_out: Vec<Value>,
}

/// What one value of an axis sets.
#[derive(Debug, Default)]
pub struct Point {
    /// Keys of the stages that take the axis by `with`: parameters, `seed`, `inputs.PORT`.
    pub own: Vec<Entry>,
    /// Keys of other stages, by name.
    pub dotted: Vec<Dotted>,
}

/// `"stage.key" = value`: a key of another stage.
#[derive(Clone, Debug)]
pub struct Dotted {
    /// The stage's name.
    pub stage: String,
    /// The key within the stage, with its value.
    pub entry: Entry,
}

impl Axis {
    /// Whether its points change other stages, as the variants of an ablation do.
    pub fn is_ablation(&self) -> bool {
        let points = self.points.iter().flatten();
        points.into_iter().any(|point| !point.dotted.is_empty())
    }

    /// Of an ablation: the position of the point that changes nothing.
    pub fn base(&self) -> Option<usize> {
        let points = self.points.as_ref().filter(|_| self.is_ablation())?;
        let empty = |point: &Point| point.own.is_empty() && point.dotted.is_empty();
        points.iter().position(empty)
    }
}
