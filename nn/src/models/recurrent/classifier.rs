//! Recurrent classifier: vectors -> recurrent layers -> one vector -> dropout -> [ReLU layer] -> logits.
//!
//! The vector is the state after the last real step (both directions concatenated), or
//! additive attention over the top layer's states.

use super::carried::carried;
use super::spec::{CellKind, RecurrentSpec};
use super::stepper::RecurrentStepper;
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var, Want};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::layers::{
    Activation, AttentionPool, Dense, Direction, LearnedState, Reading, RecurrentCell, Steps,
    activate, concat, dropout, last,
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

    /// The states that a layer starts from: those that the batch carries, or learned ones, or none.
    fn initial<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        index: usize,
    ) -> Result<Option<(Var, Option<Var>)>> {
        let (cell, start, _) = &self.cells[index];
        let given = carried(tape, batch, cell, index, self.cells.len())?;
        let learned = || start.map(|start| start.forward(tape, params, batch.items()));
        Ok(given.or_else(learned))
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
            for (cell, _, direction) in pair {
                let initial = self.initial(tape, params, batch, states.len())?;
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

    fn answer(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let (Some(hidden_states), Want::NOTHING, false) =
            (C::hidden_states::<T>(), tape.want(), tape.trains())
        else {
            return self.forward(tape, params, batch);
        };
        let input = self.reader.read(tape, params, batch)?;
        let lens = batch.lens_or_full(self.spec.run_through_padding);
        let directions = if self.spec.bidirectional { 2 } else { 1 };
        let mut parts = vec![Steps::of(tape, input)];
        for (layer, pair) in self.cells.chunks(directions).enumerate() {
            let x = match parts.len() {
                1 => parts.swap_remove(0),
                _ => {
                    let x = Steps::join(tape, &parts);
                    parts.drain(..).for_each(|part| part.recycle(tape));
                    x
                }
            };
            for (d, (cell, _, direction)) in pair.iter().enumerate() {
                let initial = self.initial(tape, params, batch, layer * directions + d)?;
                let reading = Reading {
                    lens: &lens,
                    h0: initial.map(|(h, _)| h),
                    c0: initial.and_then(|(_, c)| c),
                    direction: *direction,
                };
                parts.push(hidden_states(cell.gates(), tape, params, &x, reading));
            }
            x.recycle(tape);
        }
        let sentence = match &self.pool {
            Some(pool) => pool.of_steps(tape, params, &parts, &lens),
            None => {
                let dim: usize = parts.iter().map(Steps::dim).sum();
                let mut ends = tape.dirty(batch.items() * dim);
                for (b, to) in ends.chunks_exact_mut(dim).enumerate() {
                    let mut from = 0;
                    for (part, (.., direction)) in parts.iter().zip(&self.cells) {
                        // What was read last.
                        let t = direction.steps(part.time()).next_back().unwrap_or(0);
                        to[from..from + part.dim()].copy_from_slice(part.row(t, b));
                        from += part.dim();
                    }
                }
                tape.keep(Shape::new(1, batch.items(), dim), ends)
            }
        };
        parts.into_iter().for_each(|part| part.recycle(tape));
        let logits = self.head_of(tape, params, sentence);
        Ok(Output {
            sentence: Some(sentence),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Example, Sequence, Target};
    use crate::models::{LSTM, Model, Reads};
    use crate::numeric::simd::{CHOSEN, available};

    /// Batches whose items share nothing, a beginning, an end, both, or all; of one length and of several; one item.
    fn batches() -> Vec<Vec<Vec<u32>>> {
        let text = |len: u32| (0..len).map(|i| (i * 7 + 3) % 30).collect::<Vec<u32>>();
        let swapped = |at: usize, id: u32| {
            let mut tokens = text(9);
            tokens[at] = id;
            tokens
        };
        let swaps = |at: usize, items: u32| (0..items).map(|id| swapped(at, id)).collect();
        vec![
            swaps(0, 13),
            swaps(4, 20),
            swaps(8, 2),
            vec![text(5), text(5), text(5)],
            vec![text(9), text(4), text(1), text(9), swapped(2, 7)],
            vec![text(6)],
        ]
    }

    fn bits<T: Real>(tape: &Tape<T>, out: &Output) -> Vec<u64> {
        let values = [Some(out.logits), out.sentence];
        let values = values.into_iter().flatten().flat_map(|v| tape.get(v));
        values.map(|x| x.to_f64().to_bits()).collect()
    }

    fn agree<T: Real>(spec: &RecurrentSpec, carry: bool) {
        let model = Model::new(spec).unwrap();
        let mut params: Params<T> = model.init(4);
        for (_, span) in model.layout().entries() {
            for (k, x) in params.get_mut(span).iter_mut().enumerate() {
                // Learned states and biases start at zero, which hides them.
                *x += T::of((k as f64 * 0.37).sin() * 0.1);
            }
        }
        for texts in batches() {
            let example = |tokens: &Vec<u32>| Example {
                input: Sequence::Tokens(tokens.clone()),
                target: Target::None,
            };
            let examples: Vec<Example> = texts.iter().map(example).collect();
            let mut batch = Batch::<T>::new(&examples.iter().collect::<Vec<_>>()).unwrap();
            if carry {
                let size = batch.items() * spec.units;
                let states = |s: f64| (0..size).map(|i| T::of((i as f64 * s).sin())).collect();
                batch.carry = Some(vec![
                    (states(0.3), states(0.7));
                    model.carried_states().len()
                ]);
            }
            let (mut whole, mut short) = (Tape::default(), Tape::default());
            let all = model.forward(&mut whole, &params, &batch).unwrap();
            // Twice: the second time in memory that was used.
            for _ in 0..2 {
                short.reset(Want::NOTHING);
                let few = model.answer(&mut short, &params, &batch).unwrap();
                assert_eq!(few.states.len(), 0, "the short way was taken");
                let what = format!("{spec:?} {carry} {texts:?}");
                assert_eq!(bits(&whole, &all), bits(&short, &few), "{what}");
            }
        }
    }

    /// On every instruction set, since tiles differ.
    #[test]
    fn answers_have_the_bits_of_the_whole_forward_pass() {
        let shapes = [
            (1, false, 0),
            (1, true, 5),
            (2, true, 0),
            (2, false, 20),
            (2, true, 17),
        ];
        for isa in available() {
            CHOSEN.set(Some(isa));
            for (layers, bidirectional, attention) in shapes {
                for (units, learned_state) in [(3, true), (16, false), (41, true), (300, false)] {
                    let reads = Reads::Tokens {
                        vocabulary: 30,
                        dim: 5,
                        frozen: false,
                    };
                    let spec = RecurrentSpec {
                        layers,
                        bidirectional,
                        attention,
                        learned_state,
                        run_through_padding: units == 3,
                        hidden: if units == 16 { 7 } else { 0 },
                        ..RecurrentSpec::new(&LSTM, reads, units, 3)
                    };
                    agree::<f32>(&spec, false);
                    if units < 50 {
                        agree::<f32>(&spec, true);
                        agree::<f64>(&spec, false);
                    }
                }
            }
            CHOSEN.set(None);
        }
    }
}
