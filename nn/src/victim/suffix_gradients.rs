//! Gradients of a text whose beginning stays as it is, from the states before the change.
//!
//! A walk from the end of a text changes one word after the other and asks for a gradient each time, at a
//! place that moves to the left. For a recurrent classifier that reads forward, `d z / d x[i]` needs the state
//! after `i - 1` and the steps from `i` on: those before are neither read again nor differentiated. The rows have
//! the same bits as those of the whole text. Other models keep no state, and run on whole texts.

use super::interface::{Gradient, LayerStates};
use super::neural::Neural;
use super::per_item::carried_of;
use super::substitutions::Remembered;
use crate::autodiff::Want;
use crate::batch::{Batch, Carry, Example, Sequence, Target};
use crate::error::{Error, Result, same};
use crate::objectives::Objective;
use ndarray::Array2;

/// The suffix of a remembered text, changed or not.
#[derive(Clone, Copy, Debug)]
pub struct Suffix<'a> {
    /// The text.
    pub text: &'a Remembered,
    /// The first step that is read again.
    pub from: usize,
    /// The tokens from there on.
    pub tokens: &'a [u32],
}

impl Remembered {
    /// Whether a suffix can be run without what precedes it.
    pub fn resumable(&self) -> bool {
        self.states.is_some()
    }
}

impl Neural<'_> {
    /// Gradients of whole texts, which are remembered by the way: one forward and one backward pass each.
    pub fn gradients_remembered(
        &self,
        texts: &[&[u32]],
        objective: &Objective,
    ) -> Result<Vec<(Gradient, Remembered)>> {
        let resumable = self.model().reads_forward() && self.model().ignores_padding();
        let examples: Vec<Example> = texts.iter().map(|tokens| example(tokens)).collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let found = self.each(
            &examples,
            Want::INPUT,
            |_, _| Ok(()),
            |shard, out, batch| {
                let states = |b| resumable.then(|| carried_of(&shard.tape, out, batch, b));
                let states: Vec<_> = (0..batch.items()).map(states).collect();
                let gradients =
                    self.differentiate(shard, out, batch, &vec![objective; batch.items()])?;
                Ok(gradients.into_iter().zip(states).collect())
            },
        )?;
        let remember = |((gradient, states), tokens): ((Gradient, Option<_>), &&[u32])| {
            let text = Remembered {
                tokens: tokens.to_vec(),
                states,
            };
            (gradient, text)
        };
        Ok(found.into_iter().zip(texts).map(remember).collect())
    }

    /// Gradients with respect to the steps of each suffix only; one forward and one backward pass each.
    /// A suffix of a text that is not [resumable](Remembered::resumable), or from its first step, is an error.
    pub fn suffix_gradients(
        &self,
        suffixes: &[Suffix<'_>],
        objective: &Objective,
    ) -> Result<Vec<Gradient>> {
        let mut starts: Vec<&[LayerStates]> = Vec::with_capacity(suffixes.len());
        for (item, suffix) in suffixes.iter().enumerate() {
            let all = suffix.text.tokens.len();
            if suffix.from == 0 || suffix.from >= all {
                return Err(Error::Range {
                    what: "first step of a suffix",
                    item,
                    got: suffix.from,
                    below: all,
                });
            }
            same("tokens of a suffix", all - suffix.from, suffix.tokens.len())?;
            let states = suffix.text.states.as_ref();
            starts.push(states.ok_or(Error::Missing {
                what: "states to resume from",
            })?);
        }
        let examples: Vec<Example> = suffixes.iter().map(|e| example(e.tokens)).collect();
        let carry = |batch: &mut Batch<f32>, items: &[usize]| {
            let layer = |layer: usize| {
                let (mut h, mut c) = (Vec::new(), Vec::new());
                for &item in items {
                    let (states, before) = (&starts[item][layer], suffixes[item].from - 1);
                    let row = |m: &Array2<f32>| m.row(before).to_vec();
                    h.extend(row(&states.h));
                    c.extend(states.c.as_ref().map(row).unwrap_or_default());
                }
                (h, c)
            };
            let layers = items.first().map_or(0, |item| starts[*item].len());
            batch.carry = Some((0..layers).map(layer).collect::<Carry<f32>>());
            Ok(())
        };
        self.each(
            &examples.iter().collect::<Vec<_>>(),
            Want::INPUT,
            carry,
            |shard, out, batch| {
                self.differentiate(shard, out, batch, &vec![objective; batch.items()])
            },
        )
    }
}

fn example(tokens: &[u32]) -> Example {
    Example {
        input: Sequence::Tokens(tokens.to_vec()),
        target: Target::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{CellKind, GRU, LSTM, Model, RNN, Reads, RecurrentSpec};
    use crate::victim::Victim;

    /// A model of 30 words; `change` may make it one that cannot be resumed.
    fn model(cell: &'static CellKind, layers: usize, change: impl Fn(&mut RecurrentSpec)) -> Model {
        let reads = Reads::Tokens {
            vocabulary: 30,
            dim: 5,
            frozen: false,
        };
        let mut spec = RecurrentSpec {
            layers,
            learned_state: layers == 2,
            ..RecurrentSpec::new(cell, reads, 9, 3)
        };
        change(&mut spec);
        Model::new(&spec).unwrap()
    }

    /// Twenty texts of 2 to 21 words: two groups, and different lengths within a group.
    fn texts() -> Vec<Vec<u32>> {
        let word = |text: u32, i: u32| (i * 7 + text * 11 + 3) % 30;
        (0..20)
            .map(|text| (0..text + 2).map(|i| word(text, i)).collect())
            .collect()
    }

    #[test]
    fn suffixes_have_the_bits_of_whole_texts() {
        for (cell, layers) in [(&LSTM, 1), (&GRU, 2), (&RNN, 1), (&LSTM, 2)] {
            let model = model(cell, layers, |_| {});
            let params = model.init(4);
            let victim = Neural::new(&model, &params).unwrap();
            let objective = Objective::Logit(1);
            let texts = texts();
            let views: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
            let first = victim.gradients_remembered(&views, &objective).unwrap();
            for depth in [1, 2, 5, 20] {
                let mut changed = Vec::new();
                for text in &texts {
                    let from = text.len().saturating_sub(depth).max(1);
                    let mut text = text.clone();
                    text[from..].iter_mut().for_each(|w| *w = (*w + 13) % 30);
                    changed.push((from, text));
                }
                let pairs = changed.iter().zip(&first);
                let suffixes: Vec<Suffix<'_>> = pairs
                    .map(|((from, text), (_, remembered))| Suffix {
                        text: remembered,
                        from: *from,
                        tokens: &text[*from..],
                    })
                    .collect();
                let fast = victim.suffix_gradients(&suffixes, &objective).unwrap();
                for ((from, text), fast) in changed.iter().zip(fast) {
                    let whole = victim.gradients(&[&example(text)], &objective).unwrap();
                    let rows = &whole[0].input.as_slice().unwrap()[from * 5..];
                    assert!(rows.iter().any(|x| *x != 0.0));
                    let bits = |rows: &[f32]| rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(
                        bits(fast.input.as_slice().unwrap()),
                        bits(rows),
                        "{cell:?} {layers} {from}"
                    );
                    assert_eq!(
                        bits(fast.logits.as_slice().unwrap()),
                        bits(whole[0].logits.as_slice().unwrap())
                    );
                    assert_eq!(fast.value, whole[0].value);
                }
            }
            for ((gradient, remembered), text) in first.iter().zip(&texts) {
                let whole = victim.gradients(&[&example(text)], &objective).unwrap();
                assert_eq!(*gradient, whole[0]);
                assert!(remembered.resumable());
            }
        }
    }

    #[test]
    fn models_that_look_back_are_not_resumed_and_wrong_suffixes_are_errors() {
        let texts = texts();
        let views: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let objective = Objective::Logit(0);
        let changes: [fn(&mut RecurrentSpec); 3] = [
            |s| s.bidirectional = true,
            |s| s.attention = 4,
            |s| s.run_through_padding = true,
        ];
        for change in changes {
            let model = model(&LSTM, 1, change);
            let params = model.init(4);
            let victim = Neural::new(&model, &params).unwrap();
            let found = victim.gradients_remembered(&views, &objective).unwrap();
            assert!(found.iter().all(|(_, text)| !text.resumable()));
            let (text, tokens) = (&found[9].1, &texts[9][3..]);
            let suffix = Suffix {
                text,
                from: 3,
                tokens,
            };
            assert!(victim.suffix_gradients(&[suffix], &objective).is_err());
        }
        let model = model(&LSTM, 1, |_| {});
        let params = model.init(4);
        let victim = Neural::new(&model, &params).unwrap();
        let found = victim.gradients_remembered(&views, &objective).unwrap();
        let text = &found[9].1;
        for (from, tokens) in [(0, &texts[9][..]), (3, &texts[9][4..]), (11, &[][..])] {
            let suffix = Suffix { text, from, tokens };
            assert!(victim.suffix_gradients(&[suffix], &objective).is_err());
        }
    }
}
