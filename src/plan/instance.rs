//! A plan: stages at points of their axes, and what each reads.
//! Knows nothing of how it is made.

use std::sync::Arc;

use stages::Code;
use store::Params;

use super::files::Files;
use crate::config::{Pipeline, StageDecl};

/// All instances of a pipeline's stages. What an instance reads has a smaller position.
#[derive(Debug)]
pub struct Plan<'p> {
    /// The pipeline.
    pub pipeline: &'p Pipeline,
    /// The instances, readers after what they read.
    pub instances: Vec<Instance>,
    /// For each stage of the pipeline, its instances.
    pub of_stage: Vec<std::ops::Range<usize>>,
}

/// One stage at one point of its axes.
#[derive(Debug)]
pub struct Instance {
    /// The stage's position in the pipeline.
    pub stage: usize,
    /// `name` or `name[axis=value]`.
    pub label: String,
    /// Its axes in order, each with the position of its value.
    pub point: Vec<(usize, usize)>,
    /// Checked parameters.
    pub params: Arc<Params>,
    /// The seed, if the kind is seeded.
    pub seed: Option<u64>,
    /// Declared files.
    pub files: Arc<Files>,
    /// The code that decides its result.
    pub code: Code,
    /// What each port reads.
    pub wires: Vec<Wire>,
    /// For a stage with `select`: the metric of each candidate.
    pub metrics: Vec<Source>,
    /// The names of its outputs.
    pub outputs: Arc<Vec<String>>,
}

/// An input port and what it reads.
#[derive(Debug)]
pub struct Wire {
    /// The port.
    pub port: String,
    /// What it reads.
    pub from: Feed,
}

/// What a port reads.
#[derive(Debug)]
pub enum Feed {
    /// One table.
    One(Source),
    /// All instances along some axes as one table, the axes as columns.
    Collect {
        /// The axes.
        axes: Vec<usize>,
        /// Each instance with the positions of its axis values.
        parts: Vec<(Vec<usize>, Source)>,
    },
    /// The best of these, by the instance's metrics.
    Pick(Vec<Source>),
}

impl Feed {
    /// Everything that may be read.
    pub fn sources(&self) -> Box<dyn Iterator<Item = Source> + '_> {
        match self {
            Feed::One(source) => Box::new(std::iter::once(*source)),
            Feed::Collect { parts, .. } => Box::new(parts.iter().map(|(_, source)| *source)),
            Feed::Pick(sources) => Box::new(sources.iter().copied()),
        }
    }
}

/// An output of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The instance.
    pub instance: usize,
    /// The position of the output.
    pub output: usize,
}

impl Instance {
    /// Every output that it reads, once per reading.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.wires
            .iter()
            .flat_map(|wire| wire.from.sources())
            .chain(self.metrics.iter().copied())
    }
}

impl Plan<'_> {
    /// The declaration behind an instance.
    pub fn decl(&self, instance: usize) -> &StageDecl {
        &self.pipeline.stages[self.instances[instance].stage]
    }

    /// The code that decides an instance's result.
    pub fn code(&self, instance: usize) -> Code {
        self.instances[instance].code.clone()
    }

    /// `label` for the only output, `label.output` otherwise.
    pub fn source_label(&self, source: Source) -> String {
        let instance = &self.instances[source.instance];
        match instance.outputs.len() {
            1 => instance.label.clone(),
            _ => format!("{}.{}", instance.label, instance.outputs[source.output]),
        }
    }
}
