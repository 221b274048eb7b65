//! Pipelines to start from: a template, filled in with what a user's own file looks like.
//! Knows nothing of plans and stores.

mod columns;
mod sample;
mod template;
mod whole;

pub use columns::{Chosen, Columns, Meaning, choose};
pub use sample::{Format, read};
pub use template::{Data, Starter, Template};
pub use whole::{Whole, whole};
