//! A network as a victim.
//!
//! Items of any lengths come in one call; they are sorted by length, cut into groups and
//! computed in parallel. A row of a matrix product does not depend on the other rows, so an
//! item alone gets the same bits as in any company. Dropout is always off.

use super::interface::{Gradient, LayerStates, Matrix, Victim};
use super::per_item::{attention_of, logits_of, rows_of, states_of};
use crate::autodiff::{Params, Shard, Tape, Want};
use crate::batch::{Batch, Example, Input, Sequence, Target};
use crate::error::{Error, Result, same};
use crate::models::{Model, Output, Queries};
use crate::numeric::{finite, softmax};
use crate::objectives::Objective;
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A network and its weights as a victim.
pub struct Neural<'m> {
    model: &'m Model,
    params: &'m Params<f32>,
    spare: Mutex<Vec<Shard<f32>>>,
    forwards: AtomicU64,
    backwards: AtomicU64,
}

/// Items in a group; smaller than a training shard, since attacks ask for few at a time.
const GROUP: usize = 16;

/// The longest answer to an item of `len` steps that [`Victim`] looks into.
/// It depends on the item alone, so that company changes nothing.
fn longest_answer(len: usize) -> usize {
    2 * len + 10
}

impl<'m> Neural<'m> {
    /// An error when the weights do not belong to the model.
    pub fn new(model: &'m Model, params: &'m Params<f32>) -> Result<Self> {
        params.check(model.layout())?;
        Ok(Neural {
            model,
            params,
            spare: Mutex::default(),
            forwards: AtomicU64::new(0),
            backwards: AtomicU64::new(0),
        })
    }

    /// What a sequence-to-sequence model answers, greedily, up to `most` tokens; a forward pass an item.
    pub fn answers(&self, items: &[&Sequence], most: usize) -> Result<Vec<Vec<u32>>> {
        if items.is_empty() {
            return Err(Error::Empty {
                what: "list of items",
            });
        }
        let group = |texts: &[&Sequence]| {
            let examples: Vec<Example> = texts.iter().map(|s| unknown(s)).collect();
            let batch = Batch::new(&examples.iter().collect::<Vec<_>>())?;
            let said = self
                .model
                .decode(&mut Tape::default(), self.params, &batch, most)?;
            self.forwards
                .fetch_add(texts.len() as u64, Ordering::Relaxed);
            Ok(said)
        };
        let groups: Vec<Vec<Vec<u32>>> =
            items.par_chunks(GROUP).map(group).collect::<Result<_>>()?;
        Ok(groups.into_iter().flatten().collect())
    }

    /// The network.
    pub(crate) fn model(&self) -> &Model {
        self.model
    }

    /// The network and its weights, for those who read it step by step.
    pub fn parts(&self) -> (&'m Model, &'m Params<f32>) {
        (self.model, self.params)
    }

    /// Logits of examples of one length, after a change to each group's batch.
    pub(crate) fn groups(
        &self,
        items: &[&Example],
        change: impl Fn(&mut Batch<f32>) -> Result<()> + Sync,
    ) -> Result<Vec<Vec<f32>>> {
        let change = |batch: &mut Batch<f32>, _: &[usize]| change(batch);
        self.each(items, Want::NOTHING, change, |shard, out, batch| {
            Ok((0..batch.items())
                .map(|b| logits_of(&shard.tape, out, batch, b))
                .collect())
        })
    }

    /// Runs groups of items in parallel and puts the results in the items' order. `change` gets each group's batch
    /// and the places of its items in the list.
    pub(crate) fn each<R: Send>(
        &self,
        items: &[&Example],
        want: Want,
        change: impl Fn(&mut Batch<f32>, &[usize]) -> Result<()> + Sync,
        get: impl Fn(&mut Shard<f32>, &Output, &Batch<f32>) -> Result<Vec<R>> + Sync,
    ) -> Result<Vec<R>> {
        if items.is_empty() {
            return Err(Error::Empty {
                what: "list of items",
            });
        }
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&i| (items[i].input.len(), i));
        let group = |ids: &[usize]| {
            let examples: Vec<&Example> = ids.iter().map(|&i| items[i]).collect();
            let mut batch = Batch::new(&examples)?;
            change(&mut batch, ids)?;
            let mut shard = self
                .spare
                .lock()
                .ok()
                .and_then(|mut s| s.pop())
                .unwrap_or_default();
            shard.tape.reset(want);
            shard.grads.forget();
            let out = self.model.forward(&mut shard.tape, self.params, &batch)?;
            self.forwards.fetch_add(ids.len() as u64, Ordering::Relaxed);
            finite("logits", shard.tape.get(out.logits))?;
            let results = get(&mut shard, &out, &batch)?;
            same("results", ids.len(), results.len())?;
            if let Ok(mut spare) = self.spare.lock() {
                spare.push(shard);
            }
            Ok(results)
        };
        let groups: Vec<Vec<R>> = order.par_chunks(GROUP).map(group).collect::<Result<_>>()?;
        let mut sorted: Vec<(usize, R)> = order
            .into_iter()
            .zip(groups.into_iter().flatten())
            .collect();
        sorted.sort_by_key(|(i, _)| *i);
        Ok(sorted.into_iter().map(|(_, r)| r).collect())
    }

    /// Something of every item after a forward pass.
    pub(super) fn look_at<R: Send>(
        &self,
        items: &[&Example],
        get: impl Fn(&Tape<f32>, &Output, &Batch<f32>, usize) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.each(
            items,
            Want::NOTHING,
            |_, _| Ok(()),
            |shard, out, batch| {
                Ok((0..batch.items())
                    .map(|b| get(&shard.tape, out, batch, b))
                    .collect())
            },
        )
    }

    /// The same of sequences alone: a model that says a sequence is taught its own answer.
    pub(super) fn look<R: Send>(
        &self,
        items: &[&Sequence],
        get: impl Fn(&Tape<f32>, &Output, &Batch<f32>, usize) -> R + Sync,
    ) -> Result<Vec<R>> {
        let mut examples: Vec<Example> = items.iter().map(|s| unknown(s)).collect();
        if let Some(decoding) = self.model.decoding() {
            let limit = |s: &Sequence| longest_answer(s.len()).min(decoding.max_steps);
            let longest = items.iter().map(|s| limit(s)).max().unwrap_or(0);
            for (example, mut said) in examples.iter_mut().zip(self.answers(items, longest)?) {
                let limit = limit(&example.input);
                said.truncate(limit);
                if said.len() < limit {
                    said.push(decoding.end);
                }
                example.target = Target::Tokens(said);
            }
        }
        self.look_at(&examples.iter().collect::<Vec<_>>(), get)
    }

    /// The gradients of a group after its forward pass.
    pub(crate) fn differentiate(
        &self,
        shard: &mut Shard<f32>,
        out: &Output,
        batch: &Batch<f32>,
        objective: &Objective,
    ) -> Result<Vec<Gradient>> {
        let logits: Vec<Vec<f32>> = (0..batch.items())
            .map(|b| logits_of(&shard.tape, out, batch, b))
            .collect();
        let values = objective.apply(&mut shard.tape, out, batch, 1.0)?;
        shard.tape.backward(self.params, &mut shard.grads);
        self.backwards
            .fetch_add(batch.items() as u64, Ordering::Relaxed);
        let shape = shard.tape.shape(out.input);
        // Character models read `width` vectors a word, one after the other.
        let width = if let Input::Chars(_, width) = batch.input {
            width
        } else {
            1
        };
        let grad = shard.tape.grad(out.input);
        let gradient = |(b, (value, logits)): (usize, (f64, Vec<f32>))| {
            let step = width * shape.dim;
            let mut data = vec![0.0; batch.lens[b] * step];
            if !grad.is_empty() {
                for (t, to) in data.chunks_exact_mut(step).enumerate() {
                    to.copy_from_slice(&grad[(t * batch.items() + b) * step..][..step]);
                }
            }
            Gradient {
                value,
                logits,
                input: Matrix {
                    dim: shape.dim,
                    data,
                },
            }
        };
        Ok(values
            .into_iter()
            .zip(logits)
            .enumerate()
            .map(gradient)
            .collect())
    }
}

fn unknown(input: &Sequence) -> Example {
    Example {
        input: input.clone(),
        target: Target::None,
    }
}

impl Victim for Neural<'_> {
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        self.look(items, logits_of)
    }

    fn gradients(&self, items: &[&Example], objective: &Objective) -> Result<Vec<Gradient>> {
        self.each(
            items,
            Want::INPUT,
            |_, _| Ok(()),
            |shard, out, batch| self.differentiate(shard, out, batch, objective),
        )
    }

    fn states(&self, items: &[&Sequence]) -> Result<Vec<Vec<LayerStates>>> {
        self.look(items, states_of)?.into_iter().collect()
    }

    fn attention(&self, items: &[&Sequence]) -> Result<Vec<Vec<Matrix>>> {
        self.look(items, attention_of)?.into_iter().collect()
    }

    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let vector = |tape: &Tape<f32>, out: &Output, _: &Batch<f32>, b: usize| {
            let v = out.sentence.ok_or(Error::Missing {
                what: "sentence vector",
            })?;
            Ok(rows_of(tape, v, b, 1, 0..tape.shape(v).dim).data)
        };
        self.look(items, vector)?.into_iter().collect()
    }

    fn probabilities(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let width = self.model.outputs();
        let mut logits = self.logits(items)?;
        for z in logits.iter_mut().flat_map(|z| z.chunks_exact_mut(width)) {
            softmax(z);
        }
        Ok(logits)
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: self.backwards.load(Ordering::Relaxed),
        }
    }
}
