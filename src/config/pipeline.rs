//! A pipeline as checked, and the command line's options about it.

use std::collections::HashMap;
use std::path::PathBuf;

use super::axis::Axis;
use super::choices::Choice;
use super::executor::Executors;
use super::stage::StageDecl;
use crate::diagnostic::{Diagnostic, Sources, Span};

/// The command line's options about the pipeline.
#[derive(Clone, Debug, Default)]
pub struct PipelineRequest {
    /// The pipeline file.
    pub file: PathBuf,
    /// The name of a `[profile.NAME]` to apply.
    pub profile: Option<String>,
    /// `stage.param=value` settings, applied last.
    pub sets: Vec<String>,
}

/// A pipeline whose shape has been checked.
#[derive(Debug)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The seed of every stage that does not set its own.
    pub seed: u64,
    /// The file of claims that it names, found from its folder.
    pub claims: Option<(String, Span)>,
    /// The names of its profiles.
    pub profiles: Vec<String>,
    /// Where data sets are, from `[data]`.
    pub data: Data,
    /// Queues of other machines, from `[executor]`.
    pub executors: Executors,
    /// The folder of the pipeline file: declared files are found from here.
    pub dir: PathBuf,
    /// The axes in the order of the file.
    pub axes: Vec<Axis>,
    /// Alternatives to what is written, in the order of the file.
    pub choices: Vec<Choice>,
    /// The stages in the order of the file.
    pub stages: Vec<StageDecl>,
    /// The position of each stage by name.
    pub names: HashMap<String, usize>,
    /// Old names that were accepted.
    pub warnings: Vec<Diagnostic>,
    /// What spans point into.
    pub sources: Sources,
}

/// Where data sets lie. Not part of any key: what is read has a known digest.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// A folder of copies, found from the pipeline's folder.
    pub mirror: Option<PathBuf>,
    /// Whether the network must not be asked.
    pub offline: bool,
}

/// What a pipeline is called that has no name.
pub const UNNAMED: &str = "pipeline";
