//! What sequence-to-sequence models share: checks, tables, teacher forcing, greedy decoding.

use super::reader::{Reader, Reads, tokens};
use crate::autodiff::{Init, Layout};
use crate::batch::{Batch, Lens, Targets};
use crate::error::{Error, Result, setting};
use crate::layers::Embedding;
use crate::numeric::{Real, argmax, finite};

/// Errors that both sequence-to-sequence models share: sizes above 0, `go` and `eos` in the target's vocabulary.
pub(super) fn check_pair(
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
pub(super) fn tables(
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

/// Greedy decoding of a batch: the tokens of every item until its end token.
pub(super) struct GreedyDecoding {
    eos: u32,
    open: Vec<bool>,
    pub(super) tokens: Vec<Vec<u32>>,
}

impl GreedyDecoding {
    pub(super) fn new(items: usize, eos: u32) -> Self {
        GreedyDecoding {
            eos,
            open: vec![true; items],
            tokens: vec![Vec::new(); items],
        }
    }

    /// Adds the likeliest token of every item; returns them, and whether any sequence is still open.
    pub(super) fn extend<T: Real>(&mut self, logits: &[T]) -> Result<(Vec<u32>, bool)> {
        finite("logits", logits)?;
        let width = logits.len() / self.open.len();
        let best: Vec<u32> = logits
            .chunks_exact(width)
            .map(|z| argmax(&z.iter().map(|z| z.to_f64() as f32).collect::<Vec<_>>()) as u32)
            .collect();
        for ((token, open), tokens) in best.iter().zip(&mut self.open).zip(&mut self.tokens) {
            *open &= *token != self.eos;
            if *open {
                tokens.push(*token);
            }
        }
        Ok((best, self.open.contains(&true)))
    }
}

/// What a decoder reads under teacher forcing: the target one step late, `go` first. Also the lengths.
pub(super) fn shifted<T: Real>(
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

/// A batch with targets of one step, for decoders that are asked without any.
pub(super) fn with_targets<T: Real>(batch: &Batch<T>, ids: Vec<u32>, time: usize) -> Batch<T> {
    let lens: Lens = vec![time; batch.items()].into();
    Batch {
        targets: Targets::Tokens(ids, lens),
        ..batch.clone()
    }
}
