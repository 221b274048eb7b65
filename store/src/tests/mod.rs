//! Tests of several parts together, and the small tables and executions that they share.

pub(crate) mod execution;
mod housekeeping;
mod objects;
mod places;
mod provenance;
mod table;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

/// Two columns, three rows, one null; `n` makes it unlike others.
pub(crate) fn tiny(n: i64) -> RecordBatch {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(n), None, Some(-1)]));
    let t: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "ü"]));
    RecordBatch::try_from_iter_with_nullable([("x", x, true), ("t", t, true)]).unwrap()
}
