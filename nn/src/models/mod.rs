//! The models: each file has one, with its specification and its forward pass.

mod bayes;
mod bert;
mod char_cnn;
mod features;
mod kim_cnn;
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
pub use language::{Language, LanguageSpec};
pub use recurrent::{CellKind, Recurrent, RecurrentSpec};
pub use seq2seq::{Seq2seq, Seq2seqSpec};
pub use svm::{LinearSvm, Steps, SvmSpec};
pub use transformer::{Transformer, TransformerSpec};
pub use transformer_seq2seq::{TransformerSeq2seq, TransformerSeq2seqSpec};

use crate::batch::{Batch, Targets};
use crate::error::same;
use crate::layers::{Cell, Lens};
use crate::model::tokens;
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
