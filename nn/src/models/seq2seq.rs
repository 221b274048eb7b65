//! Sequence to sequence: bidirectional LSTM encoder, LSTM decoder with Bahdanau attention, logits from state and context.
//!
//! Paper: Bahdanau et al. 2015, arXiv:1409.0473. The encoder has one layer or more, each reading both directions of
//! the one below. The decoder starts from the last state of the top layer's forward direction, or `reversed` from
//! that of its backward direction.
//! With teacher forcing it reads the target one step late; decoding, it reads its own tokens.

use crate::autodiff::{Init, Layout, Params, Tape, Var, Want};
use crate::batch::{Batch, Side};
use crate::error::Result;
use crate::layers::{
    Decoder, Dense, Direction, Embedding, Lstm, RecurrentCell, Start, States, concat, dropout, last,
};
use crate::models::decoding::{GreedyDecoding, check_pair, generator, shifted, tables};
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec};
use crate::models::output::{Attention, AttentionKind, Hidden, Output};
use crate::models::reader::Reader;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// Embedding dimension.
    pub dim: usize,
    /// Hidden units of each direction of the encoder, and of the decoder.
    pub units: usize,
    /// Bidirectional layers of the encoder.
    #[serde(default = "one")]
    pub layers: usize,
    /// Size of the attention's hidden layer.
    pub attention: usize,
    /// Dropout of vectors and before the logits.
    #[serde(default)]
    pub dropout: f64,
    /// Whether the source is read from its end: the decoder then starts from the state at the first token. Both
    /// directions are read in any case.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reversed: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn one() -> usize {
    1
}

/// The network.
#[derive(Clone, Debug)]
pub struct Seq2seq {
    spec: Seq2seqSpec,
    reader: Reader,
    target: Embedding,
    encoder: Vec<[Lstm; 2]>,
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

impl NetworkSpec for Seq2seqSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        let sizes = [
            ("dim", spec.dim),
            ("units", spec.units),
            ("layers", spec.layers),
            ("attention", spec.attention),
        ];
        check_pair(&sizes, spec.target, [spec.go, spec.eos], spec.dropout)?;
        let init = Init::Uniform(1.0 / (spec.units as f64).sqrt());
        let (reader, target) = tables(layout, spec.source, spec.target, spec.dim)?;
        let encoder = (0..spec.layers)
            .map(|k| {
                [0, 1].map(|d| match k {
                    0 => Lstm::new(layout, &format!("encoder.{d}"), spec.dim, spec.units, init),
                    _ => {
                        let name = format!("encoder.layer{k}.{d}");
                        Lstm::new(layout, &name, 2 * spec.units, spec.units, init)
                    }
                })
            })
            .collect();
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
        Ok(Arc::new(Seq2seq {
            spec: spec.clone(),
            reader,
            target,
            encoder,
            decoder,
            head,
        }))
    }
}

impl Seq2seq {
    fn encode<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Encoded> {
        let input = self.reader.read(tape, params, batch)?;
        let (mut memory, mut states) = (input, Vec::new());
        for [ahead, back] in &self.encoder {
            let x = dropout(tape, memory, self.spec.dropout);
            let ahead = ahead.forward(tape, params, x, &batch.lens, None, Direction::Forward);
            let back = back.forward(tape, params, x, &batch.lens, None, Direction::Backward);
            memory = concat(tape, ahead.h, back.h);
            states.extend([ahead, back]);
        }
        let (direction, back) = match self.spec.reversed {
            false => (Direction::Forward, 2),
            true => (Direction::Backward, 1),
        };
        let top = &states[states.len() - back];
        let (top_h, top_c) = (top.h, top.c.expect("an LSTM has cells"));
        let keys = self.decoder.weights.keys.forward(tape, params, memory);
        let h = last(tape, top_h, direction);
        let c = last(tape, top_c, direction);
        Ok(Encoded {
            input,
            memory,
            keys,
            start: Start {
                h,
                c,
                context: None,
            },
            states,
        })
    }
}

impl Network for Seq2seq {
    fn info(&self) -> NetworkInfo {
        generator(
            "seq2seq",
            &self.spec,
            [self.spec.target, usize::MAX],
            self.spec.eos,
        )
    }
}

impl<T: Real> Forward<T> for Seq2seq {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let (ids, lens) = shifted(batch, self.spec.go, self.spec.target)?;
        let mut encoded = self.encode(tape, params, batch)?;
        let time = lens.iter().copied().max().unwrap_or(0);
        let y = self
            .target
            .forward(tape, params, &ids, time, batch.items(), Side::Target);
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
            queries: Side::Target,
            keys: Side::Source,
        }];
        Ok(Output {
            states: encoded.states,
            attention,
            hidden: vec![Hidden::target(out)],
            ..Output::new(encoded.input, logits)
        })
    }

    /// Greedy decoding, the model reading its own tokens: for each item, up to `most` tokens and no end token.
    fn decode(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        tape.reset(Want::NOTHING);
        let encoded = self.encode(tape, params, batch)?;
        let (items, mut start) = (batch.items(), encoded.start);
        let mut greedy = GreedyDecoding::new(items, self.spec.eos);
        let mut read = vec![self.spec.go; items];
        for _ in 0..most {
            let y = self
                .target
                .forward(tape, params, &read, 1, items, Side::Target);
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
            let (best, more) = greedy.extend(tape.get(logits))?;
            if !more {
                break;
            }
            read = best;
            start = Start {
                h: step.states.h,
                c: step.states.c.expect("an LSTM has cells"),
                context: Some(step.context),
            };
        }
        Ok(greedy.tokens)
    }
}
