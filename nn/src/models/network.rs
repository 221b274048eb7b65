//! What a model is: a trait that every file of this folder implements. Knows none of them by name.

use super::output::Output;
use super::step_by_step::StepByStep;
use crate::autodiff::{Layout, Params, Tape};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::numeric::Real;
use serde::Serialize;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The parameters of a model, from which it is built.
pub trait NetworkSpec: Debug {
    /// Adds the weights to `layout` and returns the network.
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>>;
}

/// What a model computes, in one precision.
pub trait Forward<T: Real> {
    /// Runs forward; gradients follow when an objective has been applied.
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output>;

    /// The same logits and sentence vectors, to the bit, for those who look at nothing else: a model may leave out
    /// what they do not depend on.
    fn answer(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        self.forward(tape, params, batch)
    }

    /// Greedy decoding: up to `most` tokens per item, without the end token.
    fn decode(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        let _ = (tape, params, batch, most);
        Err(Error::Missing { what: "decoder" })
    }

    /// Changes fresh weights whose initial values the layout cannot express.
    fn adjust(&self, params: &mut Params<T>) {
        let _ = params;
    }

    /// Projects weights onto the model's constraints after an update.
    fn constrain(&self, params: &mut Params<T>) {
        let _ = params;
    }

    /// The model one step at a time.
    fn step_by_step<'m>(&'m self, params: &'m Params<T>) -> Result<Box<dyn StepByStep<T> + 'm>> {
        let _ = params;
        Err(Error::Missing {
            what: "recurrent layers to step through",
        })
    }
}

/// A model without its weights.
pub trait Network: Forward<f32> + Forward<f64> + Any + Debug + Send + Sync {
    /// What can be known of it without running it.
    fn info(&self) -> NetworkInfo;
}

/// What can be known of a network without running it.
#[derive(Clone, Debug)]
pub struct NetworkInfo {
    /// The parameters it was built from, as JSON with the model's name first.
    pub spec: String,
    /// Logits per step: classes, or tokens.
    pub outputs: usize,
    /// What it is trained to predict.
    pub targets: TargetKind,
    /// For models that generate a sequence: how it ends.
    pub decoding: Option<Decoding>,
    /// The recurrent states that a batch may start from, layer by layer.
    pub carried_states: Vec<StateSize>,
    /// Whether the states after a step are all that later steps depend on, so that a sequence can be resumed there.
    pub reads_forward: bool,
    /// Whether padding changes nothing. If it is read like text, an item depends on the rest of its batch.
    pub ignores_padding: bool,
    /// Whether noise can be added to its embeddings.
    pub takes_noise: bool,
}

impl NetworkInfo {
    /// A network that reads whole sequences, ignores padding, and generates nothing.
    pub(super) fn new(
        name: &str,
        spec: &impl Serialize,
        targets: TargetKind,
        outputs: usize,
    ) -> Self {
        NetworkInfo {
            spec: named(name, spec),
            outputs,
            targets,
            decoding: None,
            carried_states: Vec::new(),
            reads_forward: false,
            ignores_padding: true,
            takes_noise: false,
        }
    }
}

/// What a model is trained to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A class per item.
    Class,
    /// The next token at every step of the input.
    NextTokens,
    /// A sequence whose length may differ from the input's.
    Tokens,
}

/// How a generated sequence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoding {
    /// The token that ends it.
    pub end: u32,
    /// The maximum number of steps.
    pub max_steps: usize,
}

/// The size of one recurrent layer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// Hidden units.
    pub units: usize,
    /// Whether there is a cell state of the same size.
    pub cell_state: bool,
}

/// A specification as JSON, with the name of its model first.
fn named(name: &str, spec: &impl Serialize) -> String {
    // Specifications hold numbers, words and lists only: none of it can fail to be written.
    let fields = serde_json::to_string(spec).unwrap_or_default();
    let fields = fields.strip_prefix('{').unwrap_or_default();
    format!("{{\"name\":\"{name}\",{fields}")
}
