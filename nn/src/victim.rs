//! What attacks see of a model: answers, gradients of the input, states, attention, and the bill.
//!
//! Items of any lengths come in one call; they are sorted by length, cut into groups and
//! computed in parallel. A row of a matrix product does not depend on the other rows, so an
//! item alone gets the same bits as in any company. Dropout is always off.

use crate::Result;
use crate::batch::{Batch, Example, Input, Sequence, Target, Targets};
use crate::error::{Error, same};
use crate::grads::Shard;
use crate::model::{AttentionKind, Model, Output};
use crate::objective::Objective;
use crate::params::Params;
use crate::simd::softmax;
use crate::tape::{Tape, Var, Want};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes made, one for each item: the cost that papers report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Forward passes.
    pub forwards: u64,
    /// Backward passes; each also made a forward pass, which is counted there.
    pub backwards: u64,
}

/// Numbers in rows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Matrix {
    /// Numbers in a row.
    pub dim: usize,
    /// Rows one after the other.
    pub data: Vec<f32>,
}

/// The value of an objective and its gradient with respect to the vectors an item was read as.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The objective.
    pub value: f64,
    /// A row for each step (each character of each word for character models).
    pub input: Matrix,
    /// The logits of the same forward pass.
    pub logits: Vec<f32>,
}

/// What one recurrent layer went through on one item; a row for each step.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerStates {
    /// Hidden states.
    pub h: Matrix,
    /// Cell states of an LSTM.
    pub c: Option<Matrix>,
    /// Gate activations by letter.
    pub gates: Vec<(char, Matrix)>,
}

/// A model under attack.
pub trait Victim: Sync {
    /// Logits of each item; all steps in turn for sequence models.
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>>;

    /// The gradient of an objective with respect to each item's input vectors.
    fn gradients(&self, items: &[&Example], objective: &Objective) -> Result<Vec<Gradient>>;

    /// All states and gates, layer by layer.
    fn states(&self, items: &[&Sequence]) -> Result<Vec<Vec<LayerStates>>>;

    /// Attention weights: for each layer one row a head and query (one row in all for pooling), a column for each step.
    fn attention(&self, items: &[&Sequence]) -> Result<Vec<Vec<Matrix>>>;

    /// The vector that the classifier's head reads.
    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>>;

    /// Passes made so far.
    fn queries(&self) -> Queries;

    /// Class probabilities of each item.
    fn probabilities(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let mut logits = self.logits(items)?;
        logits.iter_mut().for_each(|z| {
            softmax(z);
        });
        Ok(logits)
    }
}

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
            let examples: Vec<Example> = texts
                .iter()
                .map(|s| Example {
                    input: (*s).clone(),
                    target: Target::None,
                })
                .collect();
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

    /// Logits of examples of one length, after a change to each group's batch.
    pub(crate) fn groups(
        &self,
        items: &[&Example],
        change: impl Fn(&mut Batch<f32>) -> Result<()> + Sync,
    ) -> Result<Vec<Vec<f32>>> {
        self.each(items, Want::NOTHING, change, |shard, out, batch| {
            Ok((0..batch.items())
                .map(|b| logits_of(&shard.tape, out, batch, b))
                .collect())
        })
    }

    /// Runs groups of items in parallel and puts the results in the items' order.
    fn each<R: Send>(
        &self,
        items: &[&Example],
        want: Want,
        change: impl Fn(&mut Batch<f32>) -> Result<()> + Sync,
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
            change(&mut batch)?;
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

    fn look<R: Send>(
        &self,
        items: &[&Sequence],
        get: impl Fn(&Tape<f32>, &Output, &Batch<f32>) -> Result<Vec<R>> + Sync,
    ) -> Result<Vec<R>> {
        let examples: Vec<Example> = items
            .iter()
            .map(|s| Example {
                input: (*s).clone(),
                target: Target::None,
            })
            .collect();
        self.each(
            &examples.iter().collect::<Vec<_>>(),
            Want::NOTHING,
            |_| Ok(()),
            |shard, out, batch| get(&shard.tape, out, batch),
        )
    }
}

/// Rows of item `b` at its real steps.
fn item(tape: &Tape<f32>, v: Var, b: usize, len: usize, columns: std::ops::Range<usize>) -> Matrix {
    let shape = tape.shape(v);
    let data = tape.get(v);
    let row = |t: usize| &data[(t * shape.batch + b) * shape.dim..][columns.clone()];
    Matrix {
        dim: columns.len(),
        data: (0..len.min(shape.time)).flat_map(row).copied().collect(),
    }
}

/// Steps of the logits that belong to item `b`.
fn answered(tape: &Tape<f32>, out: &Output, batch: &Batch<f32>, b: usize) -> usize {
    match (&batch.targets, tape.shape(out.logits).time) {
        (_, 1) => 1,
        (Targets::Tokens(_, lens), _) => lens[b],
        _ => batch.lens[b],
    }
}

fn logits_of(tape: &Tape<f32>, out: &Output, batch: &Batch<f32>, b: usize) -> Vec<f32> {
    item(
        tape,
        out.logits,
        b,
        answered(tape, out, batch, b),
        0..tape.shape(out.logits).dim,
    )
    .data
}

impl Victim for Neural<'_> {
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        self.look(items, |tape, out, batch| {
            Ok((0..batch.items())
                .map(|b| logits_of(tape, out, batch, b))
                .collect())
        })
    }

    fn gradients(&self, items: &[&Example], objective: &Objective) -> Result<Vec<Gradient>> {
        self.each(
            items,
            Want::INPUT,
            |_| Ok(()),
            |shard, out, batch| {
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
            },
        )
    }

    fn states(&self, items: &[&Sequence]) -> Result<Vec<Vec<LayerStates>>> {
        self.look(items, |tape, out, batch| {
            if out.states.is_empty() {
                return Err(Error::Missing {
                    what: "recurrent states",
                });
            }
            let layer = |s: &crate::layers::States, b: usize| {
                let (units, len) = (tape.shape(s.h).dim, batch.lens[b]);
                LayerStates {
                    h: item(tape, s.h, b, len, 0..units),
                    c: s.c.map(|c| item(tape, c, b, len, 0..units)),
                    gates: s
                        .gates
                        .iter()
                        .map(|g| (g.name, item(tape, g.var, b, len, g.from..g.from + units)))
                        .collect(),
                }
            };
            Ok((0..batch.items())
                .map(|b| out.states.iter().map(|s| layer(s, b)).collect())
                .collect())
        })
    }

    fn attention(&self, items: &[&Sequence]) -> Result<Vec<Vec<Matrix>>> {
        self.look(items, |tape, out, batch| {
            if out.attention.is_empty() {
                return Err(Error::Missing { what: "attention" });
            }
            let layer = |a: &crate::model::Attention, b: usize| {
                let (shape, len) = (tape.shape(a.weights), batch.lens[b]);
                match a.kind {
                    AttentionKind::Pool => Matrix {
                        dim: len,
                        data: item(tape, a.weights, b, len, 0..1).data,
                    },
                    AttentionKind::Heads(heads) => {
                        let queries = shape.time / heads;
                        let row = |h: usize, q: usize| {
                            &tape.get(a.weights)
                                [((h * queries + q) * shape.batch + b) * shape.dim..][..len]
                        };
                        Matrix {
                            dim: len,
                            data: (0..heads)
                                .flat_map(|h| (0..len).flat_map(move |q| row(h, q)))
                                .copied()
                                .collect(),
                        }
                    }
                }
            };
            Ok((0..batch.items())
                .map(|b| out.attention.iter().map(|a| layer(a, b)).collect())
                .collect())
        })
    }

    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        self.look(items, |tape, out, batch| {
            let v = out.sentence.ok_or(Error::Missing {
                what: "sentence vector",
            })?;
            let dim = tape.shape(v).dim;
            Ok((0..batch.items())
                .map(|b| item(tape, v, b, 1, 0..dim).data)
                .collect())
        })
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: self.backwards.load(Ordering::Relaxed),
        }
    }
}
