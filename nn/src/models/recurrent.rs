//! Recurrent classifier: vectors -> recurrent layers -> one vector -> dropout -> [ReLU layer] -> logits.
//!
//! The vector is the state after the last real step (both directions side by side), or
//! additive attention over the top layer's states.

use super::carried;
use crate::batch::Batch;
use crate::error::setting;
use crate::layers::{
    Activation, AttentionPool, Cell, Dense, Direction, Gru, LearnedState, Lstm, Rnn, activate,
    concat, dropout, last,
};
use crate::model::{Attention, AttentionKind, Hidden, Output, Reader, Reads};
use crate::params::{Init, Layout, Params};
use crate::tape::Tape;
use crate::{Error, Real, Result};
use serde::{Deserialize, Serialize};

/// Which recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Vanilla.
    Rnn,
    /// Gated recurrent unit.
    Gru,
    /// Long short-term memory.
    Lstm,
}

/// Parameters of a recurrent classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentSpec {
    /// Which layer.
    pub cell: CellKind,
    /// What it reads.
    pub reads: Reads,
    /// Hidden units of each layer and direction.
    pub units: usize,
    /// Classes.
    pub classes: usize,
    /// Layers on top of each other.
    #[serde(default = "one")]
    pub layers: usize,
    /// Whether each layer also reads backward.
    #[serde(default)]
    pub bidirectional: bool,
    /// Size of the scores' hidden layer for attention pooling; 0 takes the last state.
    #[serde(default)]
    pub attention: usize,
    /// Whether initial states are learned.
    #[serde(default)]
    pub learned_state: bool,
    /// Dropout of the pooled vector, and between layers.
    #[serde(default)]
    pub dropout: f64,
    /// Units of a ReLU layer before the logits; 0 for none.
    #[serde(default)]
    pub hidden: usize,
    /// What the forget gate's bias starts at.
    #[serde(default)]
    pub forget_bias: f64,
    /// Whether padding is read like text (the tutorial behind P0 does so).
    #[serde(default)]
    pub run_through_padding: bool,
}

impl RecurrentSpec {
    /// One layer, no dropout, the last state to the logits.
    pub fn new(cell: CellKind, reads: Reads, units: usize, classes: usize) -> Self {
        RecurrentSpec {
            cell,
            reads,
            units,
            classes,
            layers: 1,
            bidirectional: false,
            attention: 0,
            learned_state: false,
            dropout: 0.0,
            hidden: 0,
            forget_bias: 0.0,
            run_through_padding: false,
        }
    }
}

fn one() -> usize {
    1
}

/// The network.
#[derive(Clone, Debug)]
pub struct Recurrent {
    spec: RecurrentSpec,
    reader: Reader,
    cells: Vec<(Cell, Option<LearnedState>, Direction)>,
    pool: Option<AttentionPool>,
    hidden: Option<Dense>,
    head: Dense,
}

/// A recurrent layer of that kind, its weights uniform in `1 / sqrt(units)` as PyTorch has them.
pub(crate) fn cell(
    layout: &mut Layout,
    kind: CellKind,
    name: &str,
    inputs: usize,
    units: usize,
) -> Cell {
    let init = Init::Uniform(1.0 / (units as f64).sqrt());
    match kind {
        CellKind::Rnn => Cell::Rnn(Rnn::new(layout, name, inputs, units, init)),
        CellKind::Gru => Cell::Gru(Gru::new(layout, name, inputs, units, init)),
        CellKind::Lstm => Cell::Lstm(Lstm::new(layout, name, inputs, units, init)),
    }
}

impl Recurrent {
    pub(crate) fn new(layout: &mut Layout, spec: &RecurrentSpec) -> Result<Self> {
        setting("units", spec.units > 0, "above 0", spec.units)?;
        setting("layers", spec.layers > 0, "above 0", spec.layers)?;
        setting("classes", spec.classes > 1, "above 1", spec.classes)?;
        setting(
            "dropout",
            (0.0..1.0).contains(&spec.dropout),
            "in [0, 1)",
            spec.dropout,
        )?;
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
                let cell = cell(layout, spec.cell, &name, width, spec.units);
                let start = spec
                    .learned_state
                    .then(|| LearnedState::new(layout, &name, spec.units, cell.has_cell()));
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

    pub(crate) fn adjust<T: Real>(&self, params: &mut Params<T>) {
        for (cell, ..) in &self.cells {
            if let Cell::Lstm(lstm) = cell {
                lstm.forget_bias(params, self.spec.forget_bias);
            }
        }
    }

    /// An error unless layers read forward only and the last state is all the head sees.
    pub(crate) fn forward_only(&self) -> Result<()> {
        if self.spec.bidirectional || self.spec.attention > 0 {
            return Err(Error::Missing {
                what: "step-by-step reading: it looks at the whole sequence",
            });
        }
        Ok(())
    }

    /// Whether the states before a step are all that the rest of a text depends on, in any batch: padding that is
    /// read like text depends on the company.
    pub(crate) fn resumable(&self) -> bool {
        self.forward_only().is_ok() && !self.spec.run_through_padding
    }

    /// The states before the first step, layer after layer.
    pub(crate) fn start<T: Real>(&self, params: &Params<T>) -> Vec<T> {
        let zero = |cell: &Cell| vec![T::ZERO; cell.units() * if cell.has_cell() { 2 } else { 1 }];
        self.cells
            .iter()
            .flat_map(|(cell, start, _)| {
                start
                    .as_ref()
                    .map_or_else(|| zero(cell), |s| s.values(params))
            })
            .collect()
    }

    /// The recurrent layers, in order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().map(|(cell, ..)| cell)
    }

    /// The dense layers from the pooled vector to the logits, ReLU between them.
    pub(crate) fn head(&self) -> impl Iterator<Item = &Dense> {
        self.hidden.iter().chain([&self.head])
    }

    pub(crate) fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Output> {
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
            logits,
            input,
            states,
            attention,
            sentence: Some(sentence),
            hidden: vec![Hidden::source(x)],
        })
    }

    /// From the pooled vector to the logits; step-wise attacks read the logits of any state.
    pub(crate) fn head_of<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        sentence: crate::tape::Var,
    ) -> crate::tape::Var {
        let mut y = dropout(tape, sentence, self.spec.dropout);
        if let Some(hidden) = &self.hidden {
            y = hidden.forward(tape, params, y);
            y = activate(tape, y, Activation::Relu);
        }
        self.head.forward(tape, params, y)
    }
}
