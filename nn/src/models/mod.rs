//! The models: each file has one, with its specification and its forward pass.

mod bag;
mod bayes;
mod bert;
mod char_cnn;
mod features;
mod kim_cnn;
mod kneser_ney;
mod language;
mod recurrent;
mod seq2seq;
mod svm;
mod transformer;
mod transformer_seq2seq;

pub use bayes::NaiveBayes;
pub use bert::{bert_spec, load_bert};
pub use char_cnn::{CharCnn, CharCnnSpec};
pub use features::{Bag, Features, Vectors};
pub use kim_cnn::{KimCnn, KimCnnSpec};
pub use kneser_ney::{Gram, KneserNey, MOST as MOST_ORDER};
pub use language::{Language, LanguageSpec};
pub use recurrent::{CellKind, Recurrent, RecurrentSpec};
pub use seq2seq::{Seq2seq, Seq2seqSpec};
pub use svm::{LinearSvm, Steps, SvmSpec, SvmTexts};
pub use transformer::{Transformer, TransformerSpec};
pub use transformer_seq2seq::{TransformerSeq2seq, TransformerSeq2seqSpec};

use crate::batch::{Batch, Targets};
use crate::error::{finite, same, setting};
use crate::evaluate::argmax;
use crate::layers::{Cell, Embedding, Lens};
use crate::model::{Reader, Reads, tokens};
use crate::params::{Init, Layout};
use crate::tape::{Shape, Tape, Var};
use crate::{Error, Real, Result};

/// The states that a batch brings for layer `index`, as values on the tape.
pub(crate) fn carried<T: Real>(
    tape: &mut Tape<T>,
    batch: &Batch<T>,
    cell: &Cell,
    index: usize,
    layers: usize,
) -> Result<Option<(Var, Option<Var>)>> {
    let Some(carry) = &batch.carry else {
        return Ok(None);
    };
    same("carried layers", layers, carry.len())?;
    let (h, c) = &carry[index];
    let shape = Shape::new(1, batch.items(), cell.units());
    same("carried hidden state", shape.len(), h.len())?;
    let h = tape.input(shape, h);
    if !cell.has_cell() {
        return Ok(Some((h, None)));
    }
    same("carried cell state", shape.len(), c.len())?;
    Ok(Some((h, Some(tape.input(shape, c)))))
}

/// Errors that both sequence-to-sequence models share: sizes above 0, `go` and `eos` in the target's vocabulary.
pub(crate) fn check_pair(
    sizes: &[(&'static str, usize)],
    target: usize,
    [go, eos]: [u32; 2],
    dropout: f64,
) -> Result<()> {
    for (what, size) in sizes.iter().chain(&[("target", target)]) {
        setting(what, *size > 0, "above 0", size)?;
    }
    for (what, token) in [("go", go), ("eos", eos)] {
        setting(what, (token as usize) < target, "a target token", token)?;
    }
    setting(
        "dropout",
        (0.0..1.0).contains(&dropout),
        "in [0, 1)",
        dropout,
    )
}

/// The tables of both sides of a sequence-to-sequence model.
pub(crate) fn tables(
    layout: &mut Layout,
    source: usize,
    target: usize,
    dim: usize,
) -> Result<(Reader, Embedding)> {
    let reads = Reads::Tokens {
        vocabulary: source,
        dim,
        frozen: false,
    };
    let init = Init::Uniform(0.1);
    let reader = Reader::new(layout, &reads, init)?;
    Ok((reader, Embedding::new(layout, "target", target, dim, init)))
}

/// What every item says, token by token, until its end token.
pub(crate) struct Said {
    eos: u32,
    open: Vec<bool>,
    pub(crate) tokens: Vec<Vec<u32>>,
}

impl Said {
    pub(crate) fn new(items: usize, eos: u32) -> Self {
        Said {
            eos,
            open: vec![true; items],
            tokens: vec![Vec::new(); items],
        }
    }

    /// Adds the likeliest token of every item; returns them, and whether anybody is still speaking.
    pub(crate) fn hear<T: Real>(&mut self, logits: &[T]) -> Result<(Vec<u32>, bool)> {
        finite("logits", logits)?;
        let width = logits.len() / self.open.len();
        let heard: Vec<u32> = logits
            .chunks_exact(width)
            .map(|z| argmax(&z.iter().map(|z| z.to_f64() as f32).collect::<Vec<_>>()) as u32)
            .collect();
        for ((token, open), said) in heard.iter().zip(&mut self.open).zip(&mut self.tokens) {
            *open &= *token != self.eos;
            if *open {
                said.push(*token);
            }
        }
        Ok((heard, self.open.contains(&true)))
    }
}

/// What a decoder reads while it is taught: the target one step late, `go` first. Also the lengths.
pub(crate) fn shifted<T: Real>(
    batch: &Batch<T>,
    go: u32,
    vocabulary: usize,
) -> Result<(Vec<u32>, Lens)> {
    let Targets::Tokens(ids, lens) = &batch.targets else {
        return Err(Error::Missing {
            what: "target sequence",
        });
    };
    tokens(ids, batch.items(), vocabulary)?;
    let mut read = vec![go; batch.items()];
    read.extend_from_slice(&ids[..ids.len() - batch.items()]);
    Ok((read, lens.clone()))
}
