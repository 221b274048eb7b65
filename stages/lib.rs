//! Everything that a stage kind is made of. `kinds/` lists them, one folder each; the other folders are
//! what they share. `contract/` is what the engine knows of all this.

pub mod attack_list;
pub mod attack_stream;
mod collect;
pub mod contract;
pub mod data;
mod fingerprint;
pub mod isolated;
pub mod item_local;
pub mod kinds;
mod models;
mod params;
pub mod predict;
pub mod programs;
pub mod proportions;
pub mod sql;
pub mod tables;
#[cfg(test)]
mod tests;
mod training;
pub mod values_read;

pub use collect::collect;
pub use contract::data_home::DataHome;
pub use contract::description::{
    Choice, Description, Inputs, MOST, Param, Port, Ports, Presence, Range, Renamed, Type,
};
pub use contract::determinism::{Determinism, Within};
pub use contract::expected::{
    AxisValues, Blamed, Expected, ExpectedInputs, ExpectedOutputs, Mismatch,
};
pub use contract::failure::{Failure, ParamError};
pub use contract::follow::{Follow, Takes};
pub use contract::notice::NOTICE;
pub use contract::program::ProgramSpec;
pub use contract::replayed::{Disagreement, Replayed};
pub use contract::role::Role;
pub use contract::stage::Stage;
pub use contract::task::{Outputs, Place, SourceFile, Task, Usage, Watch, WithoutCheckpoints};
pub use fingerprint::{Code, of_all as all_code};
pub use kinds::{STAGES, find};
pub use params::complete::{common, complete};
pub use tables::sequences::signal_channels;
