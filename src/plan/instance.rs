//! A plan: stages at points of their axes, and what each reads.
//! Knows nothing of how it is made.

use std::sync::Arc;

use stages::Code;
use store::{Installed, Params};

use super::files::Files;
use crate::config::{Best, Pipeline, StageDecl};

/// All instances of a pipeline's stages. What an instance reads has a smaller position.
#[derive(Debug)]
pub struct Plan<'p> {
    /// The pipeline.
    pub pipeline: &'p Pipeline,
    /// The instances, readers after what they read.
    pub instances: Vec<Instance>,
    /// For each stage of the pipeline, its instances; none for a stage that picks.
    pub of_stage: Vec<std::ops::Range<usize>>,
    /// How the best of several instances is found, for every [`Pointer::Best`].
    pub selections: Vec<Selection>,
}

/// How the best of several candidates is found.
#[derive(Debug)]
pub struct Selection {
    /// The metric of each candidate: a table of one row.
    pub metrics: Vec<Source>,
    /// The metric's column.
    pub column: String,
    /// Which end is best.
    pub best: Best,
    /// The name of the metric's stage.
    pub of: String,
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
    /// What its program runs on, if it starts one.
    pub installed: Arc<Installed>,
    /// The code that decides its result.
    pub code: Code,
    /// What each port reads.
    pub wires: Vec<Wire>,
    /// The metrics that decide which of its candidates it reads.
    pub metrics: Vec<Source>,
    /// The names of its outputs.
    pub outputs: Arc<Vec<String>>,
}

/// An input port and what it reads.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The port.
    pub port: String,
    /// What it reads.
    pub from: Feed,
    /// Whether it is not written in the file, but was filled in.
    pub filled_in: bool,
}

/// What a port reads.
#[derive(Clone, Debug)]
pub enum Feed {
    /// One table.
    One(Pointer),
    /// All instances along some axes as one table, the axes as columns.
    Collect {
        /// The axes.
        axes: Vec<usize>,
        /// Each instance with the positions of its axis values.
        parts: Vec<(Vec<usize>, Pointer)>,
    },
}

/// Which output is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Pointer {
    /// This one.
    Made(Source),
    /// The best of these.
    Best {
        /// The position of the [`Selection`] in the plan.
        selection: usize,
        /// The candidates, in the order of the selection's metrics.
        of: Vec<Pointer>,
    },
}

impl Pointer {
    /// Every output that this may be.
    pub fn sources(&self) -> Box<dyn Iterator<Item = Source> + '_> {
        match self {
            Pointer::Made(source) => Box::new(std::iter::once(*source)),
            Pointer::Best { of, .. } => Box::new(of.iter().flat_map(Pointer::sources)),
        }
    }

    /// The selections that decide which it is.
    pub fn selections(&self) -> Vec<usize> {
        match self {
            Pointer::Made(_) => Vec::new(),
            Pointer::Best { selection, of } => {
                let inner = of.iter().flat_map(Pointer::selections);
                std::iter::once(*selection).chain(inner).collect()
            }
        }
    }

    /// The same choice among other outputs, which `change` gives for each candidate; none if one has none.
    pub fn map(&self, change: &impl Fn(Source) -> Option<Pointer>) -> Option<Pointer> {
        match self {
            Pointer::Made(source) => change(*source),
            Pointer::Best { selection, of } => {
                let of: Option<Vec<Pointer>> = of.iter().map(|one| one.map(change)).collect();
                let of = of?;
                match of.iter().all(|one| *one == of[0]) {
                    true => of.into_iter().next(),
                    false => Some(Pointer::Best {
                        selection: *selection,
                        of,
                    }),
                }
            }
        }
    }
}

impl Feed {
    /// What it points at, once for each part.
    pub fn pointers(&self) -> Box<dyn Iterator<Item = &Pointer> + '_> {
        match self {
            Feed::One(pointer) => Box::new(std::iter::once(pointer)),
            Feed::Collect { parts, .. } => Box::new(parts.iter().map(|(_, pointer)| pointer)),
        }
    }

    /// Everything that may be read.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.pointers().flat_map(Pointer::sources)
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
