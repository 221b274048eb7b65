//! A long text as rows, its windows as batches, and the states they start from.

use crate::batch::{Batch, Carry, Input, Lens, Targets};
use crate::error::{Error, Result, setting};
use crate::models::{Model, StateSize, TargetKind};

/// A text cut into rows; the last token of a row is only a target.
pub(super) struct Rows<'a> {
    text: &'a [u32],
    stride: usize,
    /// Steps of a row.
    pub len: usize,
}

impl<'a> Rows<'a> {
    pub fn new(text: &'a [u32], batch: usize) -> Result<Self> {
        setting("batch", batch > 0, "above 0", batch)?;
        let stride = text.len() / batch;
        if stride < 2 {
            return Err(Error::Shape {
                what: "text",
                expected: format!("at least {} tokens", 2 * batch),
                got: text.len().to_string(),
            });
        }
        Ok(Rows {
            text,
            stride,
            len: stride - 1,
        })
    }

    pub fn window(
        &self,
        part: std::ops::Range<usize>,
        steps: std::ops::Range<usize>,
        carry: Carry<f32>,
    ) -> Batch<f32> {
        let lens: Lens = vec![steps.len(); part.len()].into();
        let ids = |late: usize| {
            steps
                .clone()
                .flat_map(|t| {
                    part.clone()
                        .map(move |b| self.text[b * self.stride + t + late])
                })
                .collect::<Vec<u32>>()
        };
        Batch {
            input: Input::Tokens(ids(0)),
            targets: Targets::Tokens(ids(1), lens.clone()),
            lens,
            carry: Some(carry),
            tokens: Vec::new(),
            noise: Vec::new(),
        }
    }
}

/// Zero states of every layer of a language model.
pub(super) struct Zero(Vec<StateSize>);

impl Zero {
    pub fn of(&self, items: usize) -> Carry<f32> {
        let zeros = |size: &StateSize| vec![0.0; items * size.units];
        self.0
            .iter()
            .map(|size| (zeros(size), zeros(size)))
            .collect()
    }
}

pub(super) fn zero_states(model: &Model) -> Result<Zero> {
    if model.targets() != TargetKind::NextTokens {
        return Err(Error::Missing {
            what: "next token to predict: it is not a language model",
        });
    }
    Ok(Zero(model.carried_states().to_vec()))
}
