//! What provenance records: runs, executions, what they read and made, and where they ran. Plain data,
//! how it looks in columns, and how it is read back from rows.

pub(crate) mod columns;
mod execution;
pub(crate) mod rows;
mod run;
pub(crate) mod time;

pub use execution::{
    Execution, Facts, Finished, Found, InputUsed, MadeBy, Output, RawFile, Staged, Work,
};
pub use run::{Environment, NewRun, Run, RunId, RunOutcome, Status, Use, UseRecord};
