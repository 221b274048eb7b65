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

    /// Changes fresh weights that do not start as their layout says.
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
    /// The parameters it was built from, as JSON with the model's name first.
    fn spec(&self) -> String;

    /// Logits per step: classes, or tokens.
    fn outputs(&self) -> usize;

    /// What it is trained to predict.
    fn targets(&self) -> TargetKind;

    /// For models that generate a sequence: how it ends.
    fn decoding(&self) -> Option<Decoding> {
        None
    }

    /// The recurrent states that a batch may start from, layer by layer.
    fn carried_states(&self) -> Vec<StateSize> {
        Vec::new()
    }

    /// Whether the states after a step are all that later steps depend on, so that a sequence can be resumed there.
    fn reads_forward(&self) -> bool {
        false
    }

    /// Whether padding changes nothing. If it is read like text, an item depends on the rest of its batch.
    fn ignores_padding(&self) -> bool {
        true
    }
}

/// What a model is trained to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A class per item.
    Class,
    /// The next token at every step of the input.
    NextTokens,
    /// A sequence with a length of its own.
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
pub(super) fn named(name: &str, spec: &impl Serialize) -> String {
    // Specifications hold numbers, words and lists only: none of it can fail to be written.
    let fields = serde_json::to_string(spec).unwrap_or_default();
    let fields = fields.strip_prefix('{').unwrap_or_default();
    format!("{{\"name\":\"{name}\",{fields}")
}
