//! The stage kinds: one folder each, listed in [`STAGES`].
//!
//! A kind is a pure function of its inputs, parameters, declared files and seed: no clock,
//! no environment, no path of its own. It describes itself, and help, checks, docs and keys
//! come from the description. Kinds do not import each other, but for `adversarial_retrain`,
//! which attacks by the code of `attack`.

mod collect;
mod describe;
mod determinism;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod effects;
mod expected;
mod fingerprint;
mod foreign;
mod grams;
pub mod isolated;
mod labelled;
mod models;
mod nearest;
mod pages;
mod replayed;
mod settings;
mod sway;
mod training;
#[cfg(test)]
mod trial;
mod victim;
pub mod weights;
mod wordlist;

pub mod adversarial_retrain;
pub mod attack;
pub mod command;
pub mod dataset;
pub mod embed;
pub mod evaluate;
pub mod ngrams;
pub mod sql;
pub mod table;
pub mod tokenize;
pub mod train;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use store::{Digest, Params, RawFile};

pub use collect::collect;
pub use dataset::DataHome;
pub use describe::{Description, Inputs, Param, Port, Ports, Presence, Type};
pub use determinism::{Determinism, Within};
pub use expected::{Blamed, Expected, ExpectedInputs, ExpectedOutputs, Mismatch};
pub use fingerprint::Code;
pub use labelled::signal_channels;
use nearest::nearest;
pub use replayed::{Disagreement, Replayed};

/// Every stage kind. To add one: a folder, a `pub mod` line above and an entry here.
pub static STAGES: &[&dyn Stage] = &[
    &table::Table,
    &sql::Sql,
    &command::Command,
    &dataset::Dataset,
    &tokenize::Tokenize,
    &embed::Embed,
    &ngrams::Ngrams,
    &train::Train,
    &attack::AttackStage,
    &adversarial_retrain::AdversarialRetrain,
    &evaluate::Evaluate,
];

/// The kind of that name.
pub fn find(kind: &str) -> Option<&'static dyn Stage> {
    STAGES
        .iter()
        .copied()
        .find(|stage| stage.describe().kind == kind)
}

/// A stage kind.
pub trait Stage: Sync {
    /// What the kind is called, does and takes.
    fn describe(&self) -> &'static Description;

    /// The tables it reads and makes, given its checked parameters.
    fn ports(&self, params: &Params) -> Ports;

    /// What the description's types cannot say: ranges, combinations, syntax.
    /// Parameters have the declared types and their defaults when this is called.
    fn check(&self, params: &Params) -> Result<(), ParamError> {
        let _ = params;
        Ok(())
    }

    /// What the file tells of the outputs, given what it tells of the inputs; or what of them does not fit.
    /// Parameters were checked, and required inputs are connected, when this is called. Decides no result.
    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let _ = (params, inputs);
        Ok(Vec::new())
    }

    /// The files beside the pipeline file that these parameters name, each with the parameter
    /// to blame if it cannot be read. Their contents enter the key.
    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let declared = self
            .describe()
            .params
            .iter()
            .filter(|p| p.ty == Type::Files);
        let named =
            declared.filter_map(|param| Some((param.name, params.get(param.name)?.as_list()?)));
        named
            .flat_map(|(param, names)| {
                names
                    .iter()
                    .filter_map(move |n| Some((param, n.as_text()?)))
            })
            .collect()
    }

    /// The folders that these parameters open to a program, each with the parameter to blame: the
    /// digest of each enters the key, see [`command::environment`].
    fn environments<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let _ = params;
        Vec::new()
    }

    /// The parameters that only say when to give up: a result that was made within a limit is the
    /// same within any other, so they stay out of the key.
    fn limits(&self) -> &'static [&'static str] {
        &[]
    }

    /// The code that decides the result. A kind whose parameters choose between sources
    /// (one attack or another) narrows this, so that editing one leaves the others cached.
    fn code(&self, params: &Params) -> Code {
        let _ = params;
        fingerprint::of_kind(self.describe().kind)
    }

    /// What the kind promises of its bytes. Recorded with every result; `ablate verify` holds
    /// it to that.
    fn determinism(&self, params: &Params) -> Determinism {
        let _ = params;
        Determinism::Exact
    }

    /// Recomputes from its inputs what its outputs say of themselves, for kinds whose outputs can
    /// be held to that. `exact`: on the instruction sets that they were made on.
    fn replay(
        &self,
        task: &Task<'_>,
        outputs: &Outputs,
        exact: bool,
    ) -> Option<Result<Replayed, Failure>> {
        let _ = (task, outputs, exact);
        None
    }

    /// Makes the outputs that [`Stage::ports`] promised.
    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure>;
}

/// What a stage run makes: a table for each output port.
pub type Outputs = BTreeMap<String, RecordBatch>;

/// One execution of a stage: all that it may look at.
pub struct Task<'a> {
    /// Input tables by port.
    pub inputs: BTreeMap<String, RecordBatch>,
    /// Checked parameters.
    pub params: &'a Params,
    /// The seed; 0 for kinds that are not seeded.
    pub seed: u64,
    /// Declared files by the name that the stage gives them. Their contents must have the digest.
    pub files: BTreeMap<String, SourceFile<'a>>,
    /// Where data sets lie on this machine. Decides no result: what is read has a known digest.
    pub data: &'a DataHome,
    /// Where it runs on this machine. Decides no result.
    pub place: &'a Place,
    /// Where to report to, and whether to stop.
    pub watch: &'a dyn Watch,
}

/// Where a stage runs on this machine.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The pipeline's folder: what is in it and not declared is closed to programs.
    pub pipeline: Option<PathBuf>,
    /// A path for a temporary folder that nobody else uses, and that is removed with its owner;
    /// without one, the system's folder for temporary files is used.
    pub scratch: Option<PathBuf>,
}

/// A declared file: where it lies now, and what its contents were when the key was made.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'a> {
    /// Where to read it.
    pub path: &'a Path,
    /// The digest in the key. Contents that differ are a [`Failure`], never a result.
    pub digest: Digest,
    /// Whether it may be run as a program, as the key says.
    pub executable: bool,
}

/// The eyes on a running stage.
pub trait Watch: Sync {
    /// `done` of `total` units of work are finished.
    fn progress(&self, done: u64, total: u64);

    /// So much more of a unit of work was done: `items` attacked, `forward` or `backward`
    /// queries of a model. Amounts of a unit add up and become rates in the provenance; never
    /// part of a result.
    fn work(&self, unit: &'static str, amount: u64);

    /// A line for the execution's log in the provenance. Never part of a result.
    fn log(&self, line: &str);

    /// A file from outside was read, and its bytes had this checksum. For the provenance.
    fn raw(&self, file: RawFile) {
        let _ = file;
    }

    /// How a child process was confined. For the provenance.
    fn sandbox(&self, how: &str) {
        let _ = how;
    }

    /// What a child process used, to be added to the execution's account.
    fn child(&self, usage: Usage);

    /// True once the user has asked to stop: return [`Failure::stopped`] soon.
    fn stopped(&self) -> bool;
}

/// Resources used by a child process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Largest resident set, in bytes.
    pub peak_memory: u64,
}

/// A parameter that has the right type and a wrong value. Found before anything runs.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    /// The parameter to point at.
    pub param: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A stage that could not make its outputs.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong. The first line is the headline.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The parameter to point at, if one is to blame.
    pub param: Option<&'static str>,
    /// The user stopped it: not a fault of the stage.
    pub stopped: bool,
}

impl Failure {
    /// A failure with a message alone.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            help: None,
            param: None,
            stopped: false,
        }
    }

    /// With a next step.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// With the parameter that is to blame.
    pub fn at(mut self, param: &'static str) -> Failure {
        self.param = Some(param);
        self
    }

    /// The user asked to stop.
    pub fn stopped() -> Failure {
        Failure {
            stopped: true,
            ..Failure::new("stopped")
        }
    }
}
