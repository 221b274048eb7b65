//! A network and the layout of its weights. Knows no network by name.

use super::check;
use super::network::{Decoding, Forward, Network, NetworkInfo, NetworkSpec, StateSize, TargetKind};
use super::output::Output;
use super::step_by_step::StepByStep;
use crate::autodiff::{Layout, Params, Tape, Var};
use crate::batch::{Batch, Carry};
use crate::error::{Error, Result};
use crate::numeric::{PerPrecision, Real};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// A network and the layout of its weights.
#[derive(Clone, Debug)]
pub struct Model {
    layout: Layout,
    network: Arc<dyn Network>,
    info: NetworkInfo,
}

/// A network's computation in one precision.
struct ForwardOf<'m>(PhantomData<&'m ()>);

impl<'m> PerPrecision for ForwardOf<'m> {
    type Of<T: Real> = &'m dyn Forward<T>;
}

impl Model {
    /// Builds the network of a specification.
    pub fn new(spec: &dyn NetworkSpec) -> Result<Self> {
        let mut layout = Layout::default();
        let network = spec.build(&mut layout)?;
        layout.check()?;
        let info = network.info();
        Ok(Model {
            layout,
            network,
            info,
        })
    }

    fn of<T: Real>(&self) -> &dyn Forward<T> {
        T::choose::<ForwardOf<'_>>(&*self.network, &*self.network)
    }

    /// The parameters it was built from, as JSON with the model's name first.
    pub fn spec(&self) -> &str {
        &self.info.spec
    }

    /// The names and shapes of its weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The network, if it is of this type.
    pub fn network<N: Network>(&self) -> Option<&N> {
        (&*self.network as &dyn Any).downcast_ref()
    }

    /// Fresh weights.
    pub fn init<T: Real>(&self, seed: u64) -> Params<T> {
        let mut params = Params::init(&self.layout, seed);
        self.of::<T>().adjust(&mut params);
        params
    }

    /// Runs forward; gradients follow when an objective has been applied.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Output> {
        self.check(params, batch)?;
        self.of().forward(tape, params, batch)
    }

    /// Logits and sentence vectors alone, with the bits that [`Model::forward`] gives them.
    pub fn answer<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Output> {
        self.check(params, batch)?;
        self.of().answer(tape, params, batch)
    }

    fn check<T: Real>(&self, params: &Params<T>, batch: &Batch<T>) -> Result<()> {
        params.check(&self.layout)?;
        check::sizes(batch)?;
        check::targets(self.info.targets, batch)?;
        if !batch.noise.is_empty() && !self.info.takes_noise {
            return Err(Error::Missing {
                what: "embedding that takes noise",
            });
        }
        Ok(())
    }

    /// Greedy decoding: up to `most` tokens per item, without the end token.
    pub fn decode<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        params.check(&self.layout)?;
        check::sizes(batch)?;
        self.of().decode(tape, params, batch, most)
    }

    /// For models that generate a sequence: how it ends.
    pub fn decoding(&self) -> Option<Decoding> {
        self.info.decoding
    }

    /// Logits per step: classes, or tokens.
    pub fn outputs(&self) -> usize {
        self.info.outputs
    }

    /// What it is trained to predict.
    pub fn targets(&self) -> TargetKind {
        self.info.targets
    }

    /// Whether the states after a step are all that later steps depend on.
    pub fn reads_forward(&self) -> bool {
        self.info.reads_forward
    }

    /// Whether padding changes nothing.
    pub fn ignores_padding(&self) -> bool {
        self.info.ignores_padding
    }

    /// Projects weights onto the model's constraints after an update.
    pub(crate) fn constrain<T: Real>(&self, params: &mut Params<T>) {
        self.of().constrain(params);
    }

    /// The model one step at a time; an error for models that need the whole sequence.
    pub(crate) fn step_by_step<'m, T: Real>(
        &'m self,
        params: &'m Params<T>,
    ) -> Result<Box<dyn StepByStep<T> + 'm>> {
        params.check(&self.layout)?;
        self.of().step_by_step(params)
    }

    /// The recurrent states that a batch may start from, layer by layer.
    pub fn carried_states(&self) -> &[StateSize] {
        &self.info.carried_states
    }

    /// The states after the last step, to start the next batch from.
    pub fn carry<T: Real>(&self, tape: &Tape<T>, out: &Output) -> Carry<T> {
        let end = |v: Var| {
            let shape = tape.shape(v);
            tape.get(v)[(shape.time - 1) * shape.batch * shape.dim..].to_vec()
        };
        out.states
            .iter()
            .map(|s| (end(s.h), s.c.map(end).unwrap_or_default()))
            .collect()
    }
}
