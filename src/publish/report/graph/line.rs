//! Lines between boxes.

use serde::Serialize;

/// A piece of a line: a bend between two columns, or a straight lane through one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The box that it comes from.
    pub source: usize,
    /// The box that it ends at, if it does.
    pub reader: Option<usize>,
    /// Where it begins.
    pub from: (usize, usize),
    /// Where it ends.
    pub to: (usize, usize),
    /// Halfway along, where it bends.
    pub bend: usize,
}

/// Around the drawing.
pub(super) const MARGIN: usize = 12;
