//! Sequence to sequence: bidirectional LSTM encoder, LSTM decoder with Bahdanau attention, logits from state and context.
//!
//! Paper: Bahdanau et al. 2015, arXiv:1409.0473. The decoder starts from the forward encoder's last state.
//! While taught it reads the target one step late; alone it reads what it said.

use super::shifted;
use crate::batch::{Batch, Targets};
use crate::error::setting;
use crate::evaluate::argmax;
use crate::layers::{
    Decoder, Dense, Direction, Embedding, Lens, Lstm, Start, States, concat, dropout, last,
};
use crate::model::{Attention, AttentionKind, Output, Reader, Reads};
use crate::params::{Init, Layout, Params};
use crate::tape::{Tape, Var, Want};
use crate::{Real, Result};
use serde::{Deserialize, Serialize};

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seq2seqSpec {
    /// Tokens of the source.
    pub source: usize,
    /// Tokens of the target.
    pub target: usize,
    /// The target token that starts decoding.
    pub go: u32,
    /// The target token that ends it.
    pub eos: u32,
    /// Numbers in a token's vector.
    pub dim: usize,
    /// Hidden units of each direction of the encoder, and of the decoder.
    pub units: usize,
    /// Size of the attention's hidden layer.
    pub attention: usize,
    /// Dropout of vectors and before the logits.
    #[serde(default)]
    pub dropout: f64,
}

/// The network.
#[derive(Clone, Debug)]
pub struct Seq2seq {
    spec: Seq2seqSpec,
    reader: Reader,
    target: Embedding,
    encoder: [Lstm; 2],
    decoder: Decoder,
    head: Dense,
}

struct Encoded {
    input: Var,
    memory: Var,
    keys: Var,
    start: Start,
    states: Vec<States>,
}

impl Seq2seq {
    pub(crate) fn new(layout: &mut Layout, spec: &Seq2seqSpec) -> Result<Self> {
        for (what, size) in [
            ("target", spec.target),
            ("dim", spec.dim),
            ("units", spec.units),
            ("attention", spec.attention),
        ] {
            setting(what, size > 0, "above 0", size)?;
        }
        setting(
            "go",
            (spec.go as usize) < spec.target,
            "a target token",
            spec.go,
        )?;
        setting(
            "eos",
            (spec.eos as usize) < spec.target,
            "a target token",
            spec.eos,
        )?;
        setting(
            "dropout",
            (0.0..1.0).contains(&spec.dropout),
            "in [0, 1)",
            spec.dropout,
        )?;
        let init = Init::Uniform(1.0 / (spec.units as f64).sqrt());
        let reader = Reader::new(
            layout,
            &Reads::Tokens {
                vocabulary: spec.source,
                dim: spec.dim,
                frozen: false,
            },
            Init::Uniform(0.1),
        )?;
        let target = Embedding::new(layout, "target", spec.target, spec.dim, Init::Uniform(0.1));
        let encoder =
            [0, 1].map(|d| Lstm::new(layout, &format!("encoder.{d}"), spec.dim, spec.units, init));
        let decoder = Decoder::new(
            layout,
            "decoder",
            spec.dim,
            spec.units,
            2 * spec.units,
            spec.attention,
            init,
        );
        let head = Dense::new(layout, "head", 3 * spec.units, spec.target, init);
        Ok(Seq2seq {
            spec: spec.clone(),
            reader,
            target,
            encoder,
            decoder,
            head,
        })
    }

    fn encode<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Encoded> {
        let input = self.reader.read(tape, params, batch)?;
        let x = dropout(tape, input, self.spec.dropout);
        let ahead = self.encoder[0].forward(tape, params, x, &batch.lens, None, Direction::Forward);
        let back = self.encoder[1].forward(tape, params, x, &batch.lens, None, Direction::Backward);
        let memory = concat(tape, ahead.h, back.h);
        let keys = self.decoder.keys.forward(tape, params, memory);
        let h = last(tape, ahead.h, Direction::Forward);
        let c = last(
            tape,
            ahead.c.expect("an LSTM has cells"),
            Direction::Forward,
        );
        Ok(Encoded {
            input,
            memory,
            keys,
            start: Start {
                h,
                c,
                context: None,
            },
            states: vec![ahead, back],
        })
    }

    pub(crate) fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Output> {
        let (ids, lens) = shifted(batch, self.spec.go, self.spec.target)?;
        let mut encoded = self.encode(tape, params, batch)?;
        let time = lens.iter().copied().max().unwrap_or(0);
        let y = self
            .target
            .forward_target(tape, params, &ids, time, batch.items());
        let y = dropout(tape, y, self.spec.dropout);
        let decoded = self.decoder.forward(
            tape,
            params,
            y,
            encoded.memory,
            encoded.keys,
            &batch.lens,
            encoded.start,
        );
        let out = concat(tape, decoded.states.h, decoded.context);
        let logits = dropout(tape, out, self.spec.dropout);
        let logits = self.head.forward(tape, params, logits);
        encoded.states.push(decoded.states);
        let attention = vec![Attention {
            weights: decoded.weights,
            kind: AttentionKind::Heads(1),
        }];
        Ok(Output {
            logits,
            input: encoded.input,
            states: encoded.states,
            attention,
            sentence: None,
            hidden: vec![out],
        })
    }

    /// What the model says when it reads its own words: for each item, up to `most` tokens and no end token.
    pub(crate) fn decode<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        tape.reset(Want::NOTHING);
        let encoded = self.encode(tape, params, batch)?;
        let (items, mut start) = (batch.items(), encoded.start);
        let (mut said, mut open): (Vec<Vec<u32>>, Vec<bool>) =
            (vec![Vec::new(); items], vec![true; items]);
        let mut read = vec![self.spec.go; items];
        for _ in 0..most {
            let y = self.target.forward_target(tape, params, &read, 1, items);
            let step = self.decoder.forward(
                tape,
                params,
                y,
                encoded.memory,
                encoded.keys,
                &batch.lens,
                start,
            );
            let out = concat(tape, step.states.h, step.context);
            let logits = self.head.forward(tape, params, out);
            for (b, z) in tape.get(logits).chunks_exact(self.spec.target).enumerate() {
                let z: Vec<f32> = z.iter().map(|z| z.to_f64() as f32).collect();
                read[b] = argmax(&z) as u32;
                open[b] &= read[b] != self.spec.eos;
                if open[b] {
                    said[b].push(read[b]);
                }
            }
            if !open.contains(&true) {
                break;
            }
            start = Start {
                h: step.states.h,
                c: step.states.c.expect("an LSTM has cells"),
                context: Some(step.context),
            };
        }
        Ok(said)
    }
}

/// A batch with targets of one step, for decoders that are asked without any.
pub(crate) fn with_targets<T: Real>(batch: &Batch<T>, ids: Vec<u32>, time: usize) -> Batch<T> {
    let lens: Lens = vec![time; batch.items()].into();
    Batch {
        targets: Targets::Tokens(ids, lens),
        ..batch.clone()
    }
}
