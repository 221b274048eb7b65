//! Loss and accuracy on examples, in the same bits on any number of threads.

use crate::autodiff::{Params, Shard, Want};
use crate::batch::{Batch, Example, Targets};
use crate::error::{Error, Result};
use crate::models::Model;
use crate::numeric::argmax;
use crate::objectives::Objective;
use crate::training::shards;
use rayon::prelude::*;

/// Measured on a set of examples. For sequence models every target token counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Evaluation {
    /// Mean cross-entropy; `e^loss` is the perplexity.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// Answers.
    pub count: u64,
}

/// Evaluates without dropout.
pub fn evaluate(model: &Model, params: &Params<f32>, examples: &[Example]) -> Result<Evaluation> {
    if examples.is_empty() {
        return Err(Error::Empty {
            what: "list of examples",
        });
    }
    let mut order: Vec<&Example> = examples.iter().collect();
    order.sort_by_key(|e| e.input.len());
    let groups: Vec<&[&Example]> = shards(order.len()).into_iter().map(|r| &order[r]).collect();
    let results: Vec<Result<(f64, u64, u64)>> = groups
        .par_iter()
        .map_init(Shard::default, |shard, group| {
            one(model, params, group, shard)
        })
        .collect();
    let (mut loss, mut right, mut count) = (0.0, 0, 0);
    for result in results {
        let (l, r, c) = result?;
        (loss, right, count) = (loss + l, right + r, count + c);
    }
    crate::numeric::finite("loss on the examples", &[loss])?;
    Ok(Evaluation {
        loss: loss / count as f64,
        accuracy: right as f64 / count as f64,
        count,
    })
}

fn one(
    model: &Model,
    params: &Params<f32>,
    group: &[&Example],
    shard: &mut Shard<f32>,
) -> Result<(f64, u64, u64)> {
    let batch = Batch::new(group)?;
    let tape = &mut shard.tape;
    tape.reset(Want::NOTHING);
    let out = model.forward(tape, params, &batch)?;
    let loss: f64 = Objective::CrossEntropy
        .apply(tape, &out, &batch, 1.0)?
        .iter()
        .sum();
    let shape = tape.shape(out.logits);
    let (mut right, mut count) = (0, 0);
    for (row, z) in tape.get(out.logits).chunks_exact(shape.dim).enumerate() {
        let (t, b) = (row / shape.batch, row % shape.batch);
        let target = match &batch.targets {
            Targets::Classes(classes) => classes[b],
            Targets::Tokens(ids, lens) if t < lens[b] => ids[row],
            _ => continue,
        };
        count += 1;
        right += u64::from(argmax(z) == target as usize);
    }
    Ok((loss, right, count))
}
