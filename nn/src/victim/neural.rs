//! A network as a victim.
//!
//! Items of any lengths come in one call; they are sorted by length, cut into groups and
//! computed in parallel. A row of a matrix product does not depend on the other rows, so an
//! item alone gets the same bits as in any company. Dropout is always off.

use super::interface::{
    Gradient, LayerAttention, LayerStates, LayerVectors, Substituted, Victim, substitutes,
};
use super::per_item::{
    attention_of, hidden_of, input_of, logits_of, losses_of, rows_of, states_of,
};
use crate::autodiff::{Params, Shard, Tape, Var, Want};
use crate::batch::{Batch, Example, Sequence, Target};
use crate::error::{Error, Result, same};
use crate::models::{Model, Output, Queries};
use crate::numeric::finite;
use crate::objectives::Objective;
use ndarray::{Array1, Array2};
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

/// What is wanted of a forward pass, and how many items make it together.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    want: Want,
    /// More than logits and sentence vectors.
    whole: bool,
    group: usize,
}

impl Pass {
    /// Everything.
    pub(super) fn whole(want: Want) -> Pass {
        let (whole, group) = (true, GROUP);
        Pass { want, whole, group }
    }

    /// Logits and sentence vectors.
    const ANSWER: Pass = Pass {
        want: Want::NOTHING,
        whole: false,
        group: GROUP,
    };

    /// The same of very many texts of one length.
    const MANY_ANSWERS: Pass = Pass {
        group: 4 * GROUP,
        ..Pass::ANSWER
    };
}

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

    /// How many numbers of passes it has memory for: with texts of many lengths not many more than with the longest.
    pub fn held(&self) -> usize {
        let spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        spare.iter().map(|shard| shard.tape.held()).sum()
    }

    /// The network.
    pub(super) fn model(&self) -> &Model {
        self.model
    }

    /// The network and its weights, for those who read it step by step.
    pub fn parts(&self) -> (&'m Model, &'m Params<f32>) {
        (self.model, self.params)
    }

    /// Logits of examples of one length, after a change to each group's batch.
    pub(super) fn groups(
        &self,
        items: &[&Example],
        change: impl Fn(&mut Batch<f32>) -> Result<()> + Sync,
    ) -> Result<Vec<Array2<f32>>> {
        let change = |batch: &mut Batch<f32>, _: &[usize]| change(batch);
        self.each(items, Want::NOTHING, change, |shard, out, batch| {
            Ok((0..batch.items())
                .map(|b| logits_of(&shard.tape, out, batch, b))
                .collect())
        })
    }

    /// Runs groups of items in parallel and puts the results in the items' order. `change` gets each group's batch
    /// and the places of its items in the list.
    pub(super) fn each<R: Send>(
        &self,
        items: &[&Example],
        want: Want,
        change: impl Fn(&mut Batch<f32>, &[usize]) -> Result<()> + Sync,
        get: impl Fn(&mut Shard<f32>, &Output, &Batch<f32>) -> Result<Vec<R>> + Sync,
    ) -> Result<Vec<R>> {
        self.each_with(items, Pass::whole(want), change, |shard, out, batch, _| {
            get(shard, out, batch)
        })
    }

    /// The same where the result also depends on the items' places in the list.
    pub(super) fn each_with<R: Send>(
        &self,
        items: &[&Example],
        pass: Pass,
        change: impl Fn(&mut Batch<f32>, &[usize]) -> Result<()> + Sync,
        get: impl Fn(&mut Shard<f32>, &Output, &Batch<f32>, &[usize]) -> Result<Vec<R>> + Sync,
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
            shard.tape.reset(pass.want);
            shard.grads.forget();
            let tape = &mut shard.tape;
            let out = match pass.whole {
                true => self.model.forward(tape, self.params, &batch)?,
                false => self.model.answer(tape, self.params, &batch)?,
            };
            self.forwards.fetch_add(ids.len() as u64, Ordering::Relaxed);
            finite("logits", shard.tape.get(out.logits))?;
            let results = get(&mut shard, &out, &batch, ids)?;
            same("results", ids.len(), results.len())?;
            if let Ok(mut spare) = self.spare.lock() {
                spare.push(shard);
            }
            Ok(results)
        };
        // The longest first: memory that a tape keeps is used again for shorter groups, but not for longer ones, and
        // from the shortest up it would be kept for every length.
        let groups = order.par_chunks(pass.group).rev().map(group);
        let mut groups: Vec<Vec<R>> = groups.collect::<Result<_>>()?;
        groups.reverse();
        let mut sorted: Vec<(usize, R)> = order
            .into_iter()
            .zip(groups.into_iter().flatten())
            .collect();
        sorted.sort_by_key(|(i, _)| *i);
        Ok(sorted.into_iter().map(|(_, r)| r).collect())
    }

    /// Something of every item after a forward pass. A model that generates a sequence is forced to its own answer
    /// where no target is given.
    fn look<R: Send>(
        &self,
        items: &[&Example],
        pass: Pass,
        get: impl Fn(&Tape<f32>, &Output, &Batch<f32>, usize) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let answered = self.with_answers(items)?;
        let items: Vec<&Example> = items
            .iter()
            .zip(&answered)
            .map(|(given, own)| own.as_ref().unwrap_or(given))
            .collect();
        self.each_with(
            &items,
            pass,
            |_, _| Ok(()),
            |shard, out, batch, _| {
                let each = 0..batch.items();
                each.map(|b| get(&shard.tape, out, batch, b)).collect()
            },
        )
    }

    /// The examples without a target with the model's own answer, if it generates one.
    fn with_answers(&self, items: &[&Example]) -> Result<Vec<Option<Example>>> {
        let mut answered = vec![None; items.len()];
        let Some(decoding) = self.model.decoding() else {
            return Ok(answered);
        };
        let open = |i: &usize| items[*i].target == Target::None;
        let open: Vec<usize> = (0..items.len()).filter(open).collect();
        if open.is_empty() {
            return Ok(answered);
        }
        let sequences: Vec<&Sequence> = open.iter().map(|i| &items[*i].input).collect();
        let limit = |s: &Sequence| longest_answer(s.len()).min(decoding.max_steps);
        let longest = sequences.iter().map(|s| limit(s)).max().unwrap_or(0);
        let answers = self.decode(&sequences, longest)?;
        for ((i, input), mut answer) in open.into_iter().zip(sequences).zip(answers) {
            answer.truncate(limit(input));
            if answer.len() < limit(input) {
                answer.push(decoding.end);
            }
            answered[i] = Some(Example {
                input: input.clone(),
                target: Target::Tokens(answer),
            });
        }
        Ok(answered)
    }

    /// The gradients of a group after its forward pass, `objectives` being those of its items.
    pub(super) fn differentiate(
        &self,
        shard: &mut Shard<f32>,
        out: &Output,
        batch: &Batch<f32>,
        objectives: &[&Objective],
    ) -> Result<Vec<Gradient>> {
        let each = 0..batch.items();
        let logits: Vec<Array2<f32>> = each
            .map(|b| logits_of(&shard.tape, out, batch, b))
            .collect();
        let values = Objective::apply_each(objectives, &mut shard.tape, out, batch, 1.0)?;
        shard.tape.backward(self.params, &mut shard.grads);
        self.backwards
            .fetch_add(batch.items() as u64, Ordering::Relaxed);
        let grad = shard.tape.grad(out.input);
        let gradient = |(b, (value, logits)): (usize, (f64, Array2<f32>))| Gradient {
            value,
            logits,
            input: input_of(&shard.tape, out, batch, grad, b),
        };
        let each = values.into_iter().zip(logits).enumerate();
        Ok(each.map(gradient).collect())
    }
}

/// The vector that the head reads of item `b`.
fn sentence_of(tape: &Tape<f32>, v: Var, b: usize) -> Array1<f32> {
    let row = rows_of(tape, v, b, 1, 0..tape.shape(v).dim);
    row.row(0).to_owned()
}

fn unknown(input: &Sequence) -> Example {
    Example {
        input: input.clone(),
        target: Target::None,
    }
}

impl Victim for Neural<'_> {
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        let examples: Vec<Example> = items.iter().map(|s| unknown(s)).collect();
        self.forced_logits(&examples.iter().collect::<Vec<_>>())
    }

    fn has_gradients(&self) -> bool {
        true
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: self.backwards.load(Ordering::Relaxed),
        }
    }

    fn forced_logits(&self, items: &[&Example]) -> Result<Vec<Array2<f32>>> {
        self.look(items, Pass::ANSWER, |tape, out, batch, b| {
            Ok(logits_of(tape, out, batch, b))
        })
    }

    fn losses(&self, items: &[&Example]) -> Result<Vec<Array1<f64>>> {
        self.look(items, Pass::ANSWER, losses_of)
    }

    fn decode(&self, items: &[&Sequence], most: usize) -> Result<Vec<Vec<u32>>> {
        if items.is_empty() {
            return Err(Error::Empty {
                what: "list of items",
            });
        }
        let group = |texts: &[&Sequence]| {
            let examples: Vec<Example> = texts.iter().map(|s| unknown(s)).collect();
            let batch = Batch::new(&examples.iter().collect::<Vec<_>>())?;
            let tape = &mut Tape::default();
            let answers = self.model.decode(tape, self.params, &batch, most)?;
            self.forwards
                .fetch_add(texts.len() as u64, Ordering::Relaxed);
            Ok(answers)
        };
        let groups: Vec<Vec<Vec<u32>>> =
            items.par_chunks(GROUP).map(group).collect::<Result<_>>()?;
        Ok(groups.into_iter().flatten().collect())
    }

    fn gradients_each(
        &self,
        items: &[&Example],
        objectives: &[&Objective],
    ) -> Result<Vec<Gradient>> {
        same("objectives", items.len(), objectives.len())?;
        self.each_with(
            items,
            Pass::whole(Want::INPUT),
            |_, _| Ok(()),
            |shard, out, batch, ids| {
                let own: Vec<&Objective> = ids.iter().map(|i| objectives[*i]).collect();
                self.differentiate(shard, out, batch, &own)
            },
        )
    }

    fn embed(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        let examples: Vec<Example> = items.iter().map(|s| unknown(s)).collect();
        self.look(
            &examples.iter().collect::<Vec<_>>(),
            Pass::ANSWER,
            |tape, out, batch, b| Ok(input_of(tape, out, batch, tape.get(out.input), b)),
        )
    }

    fn states(&self, items: &[&Example]) -> Result<Vec<Vec<LayerStates>>> {
        self.look(items, Pass::whole(Want::NOTHING), states_of)
    }

    fn hidden(&self, items: &[&Example]) -> Result<Vec<Vec<LayerVectors>>> {
        self.look(items, Pass::whole(Want::NOTHING), hidden_of)
    }

    fn attention(&self, items: &[&Example]) -> Result<Vec<Vec<LayerAttention>>> {
        self.look(items, Pass::whole(Want::NOTHING), attention_of)
    }

    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Array1<f32>>> {
        let examples: Vec<Example> = items.iter().map(|s| unknown(s)).collect();
        self.look(
            &examples.iter().collect::<Vec<_>>(),
            Pass::ANSWER,
            |tape, out, _, b| {
                let v = out.sentence.ok_or(Error::Missing {
                    what: "sentence vector",
                })?;
                Ok(sentence_of(tape, v, b))
            },
        )
    }

    fn substituted(
        &self,
        tokens: &[u32],
        position: usize,
        candidates: &[u32],
    ) -> Result<Vec<Substituted>> {
        let texts = substitutes(tokens, position, candidates)?;
        let examples: Vec<Example> = texts.iter().map(unknown).collect();
        self.look(
            &examples.iter().collect::<Vec<_>>(),
            Pass::MANY_ANSWERS,
            |tape, out, batch, b| {
                let logits = logits_of(tape, out, batch, b);
                let sentence = out.sentence.map(|v| sentence_of(tape, v, b));
                Ok(Substituted {
                    logits: logits.into_raw_vec_and_offset().0,
                    sentence,
                })
            },
        )
    }

    fn without(&self, tokens: &[u32], positions: &[usize]) -> Result<Vec<Array2<f32>>> {
        let text = Sequence::Tokens(tokens.to_vec());
        let vectors = self.embed(&[&text])?.swap_remove(0);
        let mut examples = Vec::with_capacity(positions.len());
        for &position in positions {
            if position >= tokens.len() {
                let (item, got, below) = (0, position, tokens.len());
                let what = "position";
                return Err(Error::Range {
                    what,
                    item,
                    got,
                    below,
                });
            }
            let mut vectors = vectors.clone();
            vectors.row_mut(position).fill(0.0);
            examples.push(unknown(&Sequence::Vectors(vectors)));
        }
        let stand = |batch: &mut Batch<f32>, _: &[usize]| {
            *batch = batch.clone().standing_for(tokens)?;
            Ok(())
        };
        let examples: Vec<&Example> = examples.iter().collect();
        self.each_with(&examples, Pass::ANSWER, stand, |shard, out, batch, _| {
            let logits = |b: usize| logits_of(&shard.tape, out, batch, b);
            Ok((0..batch.items()).map(logits).collect())
        })
    }

    fn mean_vectors(&self, items: &[&Sequence]) -> Result<Vec<Array1<f32>>> {
        let examples: Vec<Example> = items.iter().map(|s| unknown(s)).collect();
        let layers = self.hidden(&examples.iter().collect::<Vec<_>>())?;
        let mean = |layers: Vec<LayerVectors>| {
            let rows = layers.last().map(|layer| &layer.vectors);
            let rows = rows.ok_or(Error::Missing {
                what: "vectors at every position",
            })?;
            let mut sum = Array1::zeros(rows.ncols());
            for row in rows.rows() {
                sum += &row;
            }
            Ok(sum / rows.nrows() as f32)
        };
        layers.into_iter().map(mean).collect()
    }
}
