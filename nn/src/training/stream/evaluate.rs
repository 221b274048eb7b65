//! Measuring a language model on one long text.

use super::windows::{Rows, zero_states};
use crate::autodiff::{Params, Tape, Want};
use crate::error::Result;
use crate::models::Model;
use crate::numeric::{argmax, finite};
use crate::objectives::Objective;
use crate::training::evaluate::Evaluation;

/// Loss and accuracy over a text read from its first token to its last, state and all.
pub fn evaluate_stream(
    model: &Model,
    params: &Params<f32>,
    text: &[u32],
    steps: usize,
) -> Result<Evaluation> {
    let rows = Rows::new(text, 1)?;
    let mut carry = zero_states(model)?.of(1);
    let mut tape = Tape::default();
    let (mut loss, mut right) = (0.0, 0u64);
    for from in (0..rows.len).step_by(steps.max(1)) {
        let batch = rows.window(0..1, from..rows.len.min(from + steps.max(1)), carry);
        tape.reset(Want::NOTHING);
        let out = model.forward(&mut tape, params, &batch)?;
        carry = model.carry(&tape, &out);
        loss += Objective::CrossEntropy.apply(&mut tape, &out, &batch, 1.0)?[0];
        let width = tape.shape(out.logits).dim;
        let answers = tape.get(out.logits).chunks_exact(width).map(argmax);
        right += answers
            .zip(&text[from + 1..])
            .filter(|(got, target)| *got == **target as usize)
            .count() as u64;
    }
    finite("loss on the text", &[loss])?;
    Ok(Evaluation {
        loss: loss / rows.len as f64,
        accuracy: right as f64 / rows.len as f64,
        count: rows.len as u64,
    })
}
