//! An axis: a list of values over which stages are multiplied.

use store::Value;

use crate::diagnostic::Span;

/// A list of values over which stages are multiplied.
#[derive(Debug)]
pub struct Axis {
    /// Its name, as in `${name}`.
    pub name: String,
    /// Its values: scalars of one type.
    pub values: Vec<Value>,
    /// Where the name is written.
    pub span: Span,
}
