//! SQL over tables, for claims, figures and the process that runs queries.

pub use crate::kinds::sql::{query, query_here, tables_of};
