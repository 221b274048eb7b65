//! Queries that differ from a text in one token, answered from the states before it.
//!
//! A word-swap attack asks for thousands of texts that share a beginning. For a recurrent classifier that reads
//! forward, the states of the text are kept once; a swap at position `i` starts from the state after `i - 1`.
//! The answers have the same bits as those of the whole texts. Other models answer the whole texts.

use super::interface::{LayerStates, Victim};
use super::neural::Neural;
use crate::batch::{Batch, Carry, Example, Sequence, Target};
use crate::error::{Error, Result, same};
use ndarray::Array2;

/// A text and the states of the model on it.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub(super) tokens: Vec<u32>,
    pub(super) states: Option<Vec<LayerStates>>,
}

impl Neural<'_> {
    /// Reads a text once; one forward pass.
    pub fn remember(&self, tokens: &[u32]) -> Result<Remembered> {
        let resumable = self.model().reads_forward();
        let text = Example {
            input: Sequence::Tokens(tokens.to_vec()),
            target: Target::None,
        };
        let states = if resumable {
            self.states(&[&text])?.pop()
        } else {
            None
        };
        Ok(Remembered {
            tokens: tokens.to_vec(),
            states,
        })
    }

    /// Logits of the text with each candidate in turn at `position`; a forward pass for each.
    pub fn substitutions(
        &self,
        text: &Remembered,
        position: usize,
        candidates: &[u32],
    ) -> Result<Vec<Array2<f32>>> {
        if position >= text.tokens.len() {
            return Err(Error::Range {
                what: "position",
                item: 0,
                got: position,
                below: text.tokens.len(),
            });
        }
        let swapped = |from: usize, candidate: u32| {
            let mut tokens = text.tokens[from..].to_vec();
            tokens[position - from] = candidate;
            Sequence::Tokens(tokens)
        };
        match &text.states {
            Some(states) if position > 0 => {
                let texts: Vec<Sequence> =
                    candidates.iter().map(|&c| swapped(position, c)).collect();
                self.resume(&texts, states, position - 1)
            }
            _ => {
                let texts: Vec<Sequence> = candidates.iter().map(|&c| swapped(0, c)).collect();
                self.logits(&texts.iter().collect::<Vec<_>>())
            }
        }
    }

    /// Logits of endings that follow step `after` of a remembered text.
    fn resume(
        &self,
        endings: &[Sequence],
        states: &[LayerStates],
        after: usize,
    ) -> Result<Vec<Array2<f32>>> {
        let examples: Vec<Example> = endings
            .iter()
            .map(|s| Example {
                input: s.clone(),
                target: Target::None,
            })
            .collect();
        let row = |m: &Array2<f32>| m.row(after).to_vec();
        let carry_of = |items: usize| -> Carry<f32> {
            states
                .iter()
                .map(|s| {
                    (
                        row(&s.h).repeat(items),
                        s.c.as_ref().map_or_else(Vec::new, |c| row(c).repeat(items)),
                    )
                })
                .collect()
        };
        self.groups(
            &examples.iter().collect::<Vec<_>>(),
            |batch: &mut Batch<f32>| {
                batch.carry = Some(carry_of(batch.items()));
                same("lengths", batch.time(), endings[0].len())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{GRU, LSTM, Model, RNN, Reads, RecurrentSpec};

    #[test]
    fn swaps_have_the_bits_of_whole_texts() {
        for (cell, layers, attention) in [(&LSTM, 1, 0), (&GRU, 2, 0), (&RNN, 1, 0), (&LSTM, 1, 4)]
        {
            let reads = Reads::Tokens {
                vocabulary: 30,
                dim: 5,
                frozen: false,
            };
            let spec = RecurrentSpec {
                layers,
                attention,
                learned_state: true,
                ..RecurrentSpec::new(cell, reads, 9, 3)
            };
            let model = Model::new(&spec).unwrap();
            let params = model.init(4);
            let victim = Neural::new(&model, &params).unwrap();
            let tokens: Vec<u32> = (0..12).map(|i| (i * 7 + 3) % 30).collect();
            let text = victim.remember(&tokens).unwrap();
            let candidates: Vec<u32> = (0..30).collect();
            for position in [0, 1, 6, 11] {
                let fast = victim.substitutions(&text, position, &candidates).unwrap();
                for (c, z) in candidates.iter().zip(fast) {
                    let mut whole = tokens.clone();
                    whole[position] = *c;
                    assert_eq!(
                        victim.logits(&[&Sequence::Tokens(whole)]).unwrap()[0],
                        z,
                        "{cell:?} {layers} {attention} {position}"
                    );
                }
            }
            assert!(victim.substitutions(&text, 12, &candidates).is_err());
            assert!(
                victim.substitutions(&text, 3, &[30]).is_err(),
                "a token outside the vocabulary"
            );
        }
    }
}
