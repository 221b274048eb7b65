//! Recurrent classifier: vectors -> recurrent layers -> one vector -> dropout -> [ReLU layer] -> logits.
//!
//! The vector is the state after the last real step (both directions concatenated), or
//! additive attention over the top layer's states.

use super::carried::carried;
use super::spec::{CellKind, RecurrentSpec};
use super::stepper::RecurrentStepper;
use crate::autodiff::{Init, Layout, Params, Tape, Var};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::layers::{
    Activation, AttentionPool, Dense, Direction, LearnedState, RecurrentCell, activate, concat,
    dropout, last,
};
use crate::models::network::{Forward, Network, NetworkInfo, StateSize, TargetKind};
use crate::models::output::{Attention, AttentionKind, Hidden, Output};
use crate::models::reader::Reader;
use crate::models::settings;
use crate::models::step_by_step::StepByStep;
use crate::numeric::Real;
use std::sync::Arc;

/// The network.
#[derive(Clone, Debug)]
pub struct Recurrent<C> {
    spec: RecurrentSpec,
    reader: Reader,
    cells: Vec<(C, Option<LearnedState>, Direction)>,
    pool: Option<AttentionPool>,
    hidden: Option<Dense>,
    head: Dense,
}

/// A kind of layer, for the list of a file that has one.
pub(in crate::models) const fn cell_kind<C: RecurrentCell>(name: &'static str) -> CellKind {
    CellKind {
        name,
        build: |layout, spec| Ok(Arc::new(Recurrent::<C>::new(layout, spec)?)),
    }
}

impl<C: RecurrentCell> Recurrent<C> {
    fn new(layout: &mut Layout, spec: &RecurrentSpec) -> Result<Self> {
        settings::sizes(&[("units", spec.units), ("layers", spec.layers)])?;
        settings::classes(spec.classes)?;
        settings::dropout(spec.dropout)?;
        let reader = Reader::new(layout, &spec.reads, Init::Uniform(0.1))?;
        let directions: &[Direction] = if spec.bidirectional {
            &[Direction::Forward, Direction::Backward]
        } else {
            &[Direction::Forward]
        };
        let (mut cells, mut width) = (Vec::new(), reader.dim());
        for layer in 0..spec.layers {
            for (d, direction) in directions.iter().enumerate() {
                let name = format!("recurrent.{layer}.{d}");
                let init = Init::Uniform(1.0 / (spec.units as f64).sqrt());
                let cell = C::new(layout, &name, width, spec.units, init);
                let start = spec
                    .learned_state
                    .then(|| LearnedState::new(layout, &name, spec.units, C::CELL_STATE));
                cells.push((cell, start, *direction));
            }
            width = spec.units * directions.len();
        }
        let pool = (spec.attention > 0)
            .then(|| AttentionPool::new(layout, "attention", width, spec.attention, Init::Glorot));
        let hidden = (spec.hidden > 0)
            .then(|| Dense::new(layout, "hidden", width, spec.hidden, Init::Glorot));
        let head = Dense::new(
            layout,
            "head",
            if spec.hidden > 0 { spec.hidden } else { width },
            spec.classes,
            Init::Glorot,
        );
        Ok(Recurrent {
            spec: spec.clone(),
            reader,
            cells,
            pool,
            hidden,
            head,
        })
    }

    /// An error unless layers read forward only and the last state is all the head sees.
    pub(crate) fn forward_only(&self) -> Result<()> {
        if self.spec.bidirectional || self.spec.attention > 0 {
            return Err(Error::Missing {
                what: "step-by-step mode: it reads the whole sequence at once",
            });
        }
        Ok(())
    }

    /// The recurrent layers, in order.
    pub fn cells(&self) -> impl Iterator<Item = &C> {
        self.cells.iter().map(|(cell, ..)| cell)
    }

    /// From the pooled vector to the logits.
    fn head_of<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, sentence: Var) -> Var {
        let mut y = dropout(tape, sentence, self.spec.dropout);
        if let Some(hidden) = &self.hidden {
            y = hidden.forward(tape, params, y);
            y = activate(tape, y, Activation::Relu);
        }
        self.head.forward(tape, params, y)
    }
}

impl<C: RecurrentCell> Network for Recurrent<C> {
    fn info(&self) -> NetworkInfo {
        let (spec, targets) = (&self.spec, TargetKind::Class);
        let state = |cell: &C| StateSize {
            units: cell.units(),
            cell_state: C::CELL_STATE,
        };
        NetworkInfo {
            carried_states: self.cells().map(state).collect(),
            reads_forward: self.forward_only().is_ok(),
            ignores_padding: !spec.run_through_padding,
            ..NetworkInfo::new("recurrent", spec, targets, spec.classes)
        }
    }
}

impl<C: RecurrentCell, T: Real> Forward<T> for Recurrent<C> {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let input = self.reader.read(tape, params, batch)?;
        let lens = batch.lens_or_full(self.spec.run_through_padding);
        let (mut x, mut states) = (input, Vec::new());
        for (layer, pair) in self
            .cells
            .chunks(if self.spec.bidirectional { 2 } else { 1 })
            .enumerate()
        {
            if layer > 0 {
                x = dropout(tape, x, self.spec.dropout);
            }
            let mut outs = Vec::new();
            for (cell, start, direction) in pair {
                let initial = match (
                    carried(tape, batch, cell, states.len(), self.cells.len())?,
                    start,
                ) {
                    (None, Some(start)) => Some(start.forward(tape, params, batch.items())),
                    (initial, _) => initial,
                };
                let s = cell.forward(tape, params, x, &lens, initial, *direction);
                outs.push(s.h);
                states.push(s);
            }
            x = if outs.len() == 2 {
                concat(tape, outs[0], outs[1])
            } else {
                outs[0]
            };
        }
        let (sentence, attention) = match &self.pool {
            Some(pool) => {
                let (y, weights) = pool.forward(tape, params, x, &lens);
                (y, vec![Attention::within(weights, AttentionKind::Pool)])
            }
            None => {
                let top = &states[states.len() - if self.spec.bidirectional { 2 } else { 1 }..];
                let ends: Vec<_> = top.iter().map(|s| (s.h, s.direction)).collect();
                let ends: Vec<_> = ends.into_iter().map(|(h, d)| last(tape, h, d)).collect();
                (
                    if ends.len() == 2 {
                        concat(tape, ends[0], ends[1])
                    } else {
                        ends[0]
                    },
                    Vec::new(),
                )
            }
        };
        let logits = self.head_of(tape, params, sentence);
        Ok(Output {
            states,
            attention,
            sentence: Some(sentence),
            hidden: vec![Hidden::source(x)],
            ..Output::new(input, logits)
        })
    }

    fn adjust(&self, params: &mut Params<T>) {
        for cell in self.cells() {
            cell.set_forget_bias(params, self.spec.forget_bias);
        }
    }

    fn step_by_step<'m>(&'m self, params: &'m Params<T>) -> Result<Box<dyn StepByStep<T> + 'm>> {
        self.forward_only()?;
        let layers = self
            .cells
            .iter()
            .map(|(cell, start, _)| (cell, start.as_ref()));
        let head = self.hidden.iter().chain([&self.head]);
        Ok(Box::new(RecurrentStepper::new(params, layers, head)))
    }
}
