//! Results by the names that people write: `stage[axis=value].output[column=value]`, in a plan or in a recorded run.

pub mod cell;
pub mod columns;
pub mod degenerate;
pub mod find;
pub mod recall;
pub mod recorded;
pub mod reference;
pub mod replicates;
#[allow(dead_code, unused_imports)] // `ablation` reads the rest.
pub mod statistics;
pub mod table;
