//! One step of training: shards forward and backward, gradients added, weights changed.
//!
//! The number of shards depends on the size of the batch only, and gradients are added in the
//! order of the shards, so a step has the same bits on any number of threads.

use crate::autodiff::{PackedWeights, Params, Shard, Tape, Touched, Var, Want, reduce_again};
use crate::batch::{Batch, Carry, Example, Targets};
use crate::error::{Error, Result};
use crate::models::Model;
use crate::numeric::{Real, Stream, scaled_softmax};
use crate::objectives::Objective;
use crate::training::{Clip, Memory, Optimiser, norm};
use ndarray::Array2;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The items of each shard of a batch: about 16 each, 32 in large batches.
pub fn shards(items: usize) -> Vec<Range<usize>> {
    let count = items.div_ceil(if items > 128 { 32 } else { 16 }).max(1);
    (0..count)
        .map(|k| k * items / count..(k + 1) * items / count)
        .collect()
}

/// The state of a training run between two steps.
pub struct Trainer<'m> {
    /// The network.
    pub model: &'m Model,
    /// Its weights.
    pub params: Params<f32>,
    /// What the optimiser remembers.
    pub memory: Memory<f32>,
    /// Every step multiplies the weights by `1 - rate * weight_decay` first.
    pub weight_decay: f64,
    optimiser: Optimiser,
    clip: Clip,
    noise: Stream,
    work: Vec<Shard<f32>>,
    packs: Arc<PackedWeights<f32>>,
    total: Vec<f32>,
    touched: Touched,
    last_good: f64,
}

/// What a step measured, before the weights changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The mean of the objective.
    pub loss: f64,
    /// The norm of its gradient before clipping.
    pub norm: f64,
    /// The states at the end of each shard, for models that carry them on.
    pub carry: Vec<Carry<f32>>,
}

impl Trainer<'_> {
    /// How many numbers of passes it has memory for: as many after a thousand steps as after a few.
    pub fn held(&self) -> usize {
        self.work.iter().map(|shard| shard.tape.held()).sum()
    }
}

impl<'m> Trainer<'m> {
    /// Starts from these weights; `seed` names the dropout.
    pub fn new(
        model: &'m Model,
        params: Params<f32>,
        optimiser: Optimiser,
        clip: Clip,
        seed: u64,
    ) -> Result<Self> {
        params.check(model.layout())?;
        optimiser.check()?;
        let memory = Memory::new(&optimiser, params.trained.len());
        let noise = Stream::new(seed, "dropout");
        Ok(Trainer {
            weight_decay: 0.0,
            model,
            params,
            memory,
            optimiser,
            clip,
            noise,
            work: Vec::new(),
            packs: Arc::default(),
            total: Vec::new(),
            touched: Touched::new(),
            last_good: f64::NAN,
        })
    }

    /// Cuts examples into shards and takes a step.
    pub fn step_on(
        &mut self,
        examples: &[&Example],
        objective: &Objective,
        rate: f64,
    ) -> Result<Step> {
        self.step_with(examples, &vec![None; examples.len()], objective, rate)
    }

    /// The same with noise added to the vectors that some examples are read as.
    pub fn step_with(
        &mut self,
        examples: &[&Example],
        noise: &[Option<&Array2<f32>>],
        objective: &Objective,
        rate: f64,
    ) -> Result<Step> {
        let batches: Vec<Batch<f32>> = shards(examples.len())
            .into_iter()
            .map(|r| Batch::new(&examples[r.clone()])?.with_noise(&noise[r]))
            .collect::<Result<_>>()?;
        self.step(&batches, objective, rate)
    }

    /// Takes a step on one batch a shard. The loss is the mean over items of sums over steps.
    /// When it or its gradient is not finite, the weights stay as they were.
    pub fn step(
        &mut self,
        batches: &[Batch<f32>],
        objective: &Objective,
        rate: f64,
    ) -> Result<Step> {
        let items: usize = batches.iter().map(Batch::items).sum();
        let step = self.memory.updates;
        let noise = self.noise.item(step);
        let (model, params, scale) = (self.model, &self.params, 1.0 / items.max(1) as f64);
        self.work.resize_with(batches.len(), Shard::default);
        let firsts: Vec<usize> = batches
            .iter()
            .scan(0, |sum, b| Some(std::mem::replace(sum, *sum + b.items())))
            .collect();
        let mut packs = None;
        // Nobody else holds them between two steps; were it otherwise, shards would pack for themselves.
        if batches.len() > 1
            && let Some(fresh) = Arc::get_mut(&mut self.packs)
        {
            fresh.refresh(model.layout(), params);
            packs = Some(self.packs.clone());
        }
        let results: Vec<Result<(f64, Carry<f32>)>> = self
            .work
            .par_iter_mut()
            .zip(batches)
            .zip(firsts)
            .map(|((shard, batch), first)| {
                shard.tape.reset(Want::WEIGHTS);
                shard.tape.train(noise, first);
                shard.tape.lend(packs.clone());
                shard.grads.reset(model.layout());
                let out = model.forward(&mut shard.tape, params, batch)?;
                let carry = if batch.carry.is_some() {
                    model.carry(&shard.tape, &out)
                } else {
                    Carry::new()
                };
                let values = match objective {
                    Objective::CrossEntropy => {
                        cross_entropy_in_place(&mut shard.tape, out.logits, &batch.targets, scale)?
                    }
                    other => other.apply(&mut shard.tape, &out, batch, scale)?,
                };
                shard.tape.backward(params, &mut shard.grads);
                shard.tape.lend(None);
                Ok((values.iter().sum(), carry))
            })
            .collect();
        let mut loss = 0.0;
        let mut carry = Vec::with_capacity(batches.len());
        for result in results {
            let (value, states) = result?;
            loss += value;
            carry.push(states);
        }
        loss *= scale;
        reduce_again(
            &self.work,
            model.layout(),
            &mut self.total,
            &mut self.touched,
        )?;
        let norm = norm(&self.total);
        for (what, x) in [("loss", loss), ("gradient", norm)] {
            if !x.is_finite() {
                return Err(Error::Diverged {
                    step,
                    what,
                    last_good: self.last_good,
                });
            }
        }
        self.last_good = loss;
        if self.weight_decay > 0.0 {
            let kept = (1.0 - rate * self.weight_decay) as f32;
            self.params.trained.iter_mut().for_each(|w| *w *= kept);
        }
        self.memory.update(
            &self.optimiser,
            self.clip,
            rate,
            norm,
            &mut self.params.trained,
            &self.total,
        );
        self.model.constrain(&mut self.params);
        Ok(Step { loss, norm, carry })
    }
}

/// Cross-entropy that turns the logits into their own gradient: no second array of the vocabulary's size.
fn cross_entropy_in_place<T: Real>(
    tape: &mut Tape<T>,
    logits: Var,
    targets: &Targets,
    scale: f64,
) -> Result<Vec<f64>> {
    let shape = tape.shape(logits);
    let (mut z, scale) = (tape.take(logits), T::of(scale));
    let mut values = vec![0.0; shape.batch];
    for (row, z) in z.chunks_exact_mut(shape.dim).enumerate() {
        let (t, b) = (row / shape.batch, row % shape.batch);
        let y = match targets {
            Targets::None => return Err(Error::Missing { what: "target" }),
            Targets::Classes(classes) => classes[b] as usize,
            Targets::Tokens(_, lens) if t >= lens[b] => {
                z.fill(T::ZERO);
                continue;
            }
            Targets::Tokens(ids, _) => ids[row] as usize,
        };
        let target = *z.get(y).ok_or(Error::Range {
            what: "target",
            item: b,
            got: y,
            below: shape.dim,
        })?;
        values[b] += (scaled_softmax(z, scale) - target).to_f64();
        z[y] -= scale;
    }
    tape.put_grad(logits, z);
    Ok(values)
}
