//! What sequence-to-sequence models share: checks, tables, teacher forcing, greedy decoding.

use super::network::{Decoding, NetworkInfo, TargetKind};
use super::reader::{Reader, tokens};
use super::settings;
use crate::autodiff::{Init, Layout};
use crate::batch::{Batch, Lens, Targets};
use crate::error::{Error, Result, setting};
use crate::layers::Embedding;
use crate::numeric::{Real, argmax, finite};
use serde::Serialize;

/// Errors that both sequence-to-sequence models share: sizes above 0, `go` and `eos` in the target's vocabulary.
pub(super) fn check_pair(
    sizes: &[(&'static str, usize)],
    target: usize,
    [go, eos]: [u32; 2],
    dropout: f64,
) -> Result<()> {
    settings::sizes(sizes)?;
    settings::sizes(&[("target", target)])?;
    for (what, token) in [("go", go), ("eos", eos)] {
        setting(what, (token as usize) < target, "a target token", token)?;
    }
    settings::dropout(dropout)
}

/// The tables of both sides of a sequence-to-sequence model.
pub(super) fn tables(
    layout: &mut Layout,
    source: usize,
    target: usize,
    dim: usize,
) -> Result<(Reader, Embedding)> {
    let init = Init::Uniform(0.1);
    let reader = Reader::tokens(layout, source, dim, init)?;
    Ok((reader, Embedding::new(layout, "target", target, dim, init)))
}

/// A model that generates tokens of a vocabulary, up to a maximum number, until its end token.
pub(super) fn generator(
    name: &str,
    spec: &impl Serialize,
    [vocabulary, max_steps]: [usize; 2],
    end: u32,
) -> NetworkInfo {
    NetworkInfo {
        decoding: Some(Decoding { end, max_steps }),
        ..NetworkInfo::new(name, spec, TargetKind::Tokens, vocabulary)
    }
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

/// The batch with these targets.
pub(super) fn with_targets<T: Real>(batch: &Batch<T>, ids: Vec<u32>, time: usize) -> Batch<T> {
    let lens: Lens = vec![time; batch.items()].into();
    Batch {
        targets: Targets::Tokens(ids, lens),
        ..batch.clone()
    }
}
