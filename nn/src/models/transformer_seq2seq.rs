//! Transformer for sequence to sequence: encoder blocks, causal decoder blocks that attend to them, logits at every step.
//!
//! Paper: Vaswani et al. 2017, arXiv:1706.03762. Differs: learned positions, GELU, and separate tables.

use crate::autodiff::{Init, Layout, Params, Span, Tape, Want};
use crate::batch::{Batch, Side};
use crate::error::Result;
use crate::layers::{
    Activation, Block, BlockSize, Dense, Embedding, LayerNorm, Sight, dropout, positions,
};
use crate::models::check;
use crate::models::decoding::{
    GreedyDecoding, check_pair, generator, shifted, tables, with_targets,
};
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec};
use crate::models::output::{Attention, AttentionKind, Hidden, Output};
use crate::models::reader::Reader;
use crate::models::settings;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerSeq2seqSpec {
    /// Tokens of the source.
    pub source: usize,
    /// Tokens of the target.
    pub target: usize,
    /// The target token that starts decoding.
    pub go: u32,
    /// The target token that ends it.
    pub eos: u32,
    /// Maximum number of steps of either side.
    pub positions: usize,
    /// Model dimension.
    pub dim: usize,
    /// Heads; must divide `dim`.
    pub heads: usize,
    /// Feed-forward dimension.
    pub inner: usize,
    /// Blocks on either side.
    pub layers: usize,
    /// Dropout of the vectors and after each part of a block.
    #[serde(default)]
    pub dropout: f64,
}

/// The network.
#[derive(Clone, Debug)]
pub struct TransformerSeq2seq {
    spec: TransformerSeq2seqSpec,
    reader: Reader,
    target: Embedding,
    positions: [Span; 2],
    norms: [LayerNorm; 2],
    encoder: Vec<Block>,
    decoder: Vec<Block>,
    head: Dense,
}

impl NetworkSpec for TransformerSeq2seqSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        let sizes = [
            ("positions", spec.positions),
            ("dim", spec.dim),
            ("inner", spec.inner),
            ("layers", spec.layers),
        ];
        check_pair(&sizes, spec.target, [spec.go, spec.eos], spec.dropout)?;
        settings::heads(spec.heads, spec.dim)?;
        let (init, eps) = (Init::Glorot, 1e-5);
        let (reader, target) = tables(layout, spec.source, spec.target, spec.dim)?;
        let positions = ["positions.source", "positions.target"]
            .map(|name| layout.add(name, spec.positions, spec.dim, Init::Uniform(0.1)));
        let norms =
            ["norm.source", "norm.target"].map(|name| LayerNorm::new(layout, name, spec.dim, eps));
        let size = BlockSize {
            dim: spec.dim,
            heads: spec.heads,
            inner: spec.inner,
            activation: Activation::Gelu,
            dropout: spec.dropout,
            eps,
        };
        let encoder = (0..spec.layers)
            .map(|k| Block::encoder(layout, &format!("encoder.{k}"), size, init))
            .collect();
        let decoder = (0..spec.layers)
            .map(|k| Block::decoder(layout, &format!("decoder.{k}"), size, init))
            .collect();
        let head = Dense::new(layout, "head", spec.dim, spec.target, init);
        Ok(Arc::new(TransformerSeq2seq {
            spec: spec.clone(),
            reader,
            target,
            positions,
            norms,
            encoder,
            decoder,
            head,
        }))
    }
}

impl Network for TransformerSeq2seq {
    fn info(&self) -> NetworkInfo {
        let spec = &self.spec;
        let sizes = [spec.target, spec.positions];
        generator("transformer_seq2seq", spec, sizes, spec.eos)
    }
}

impl<T: Real> Forward<T> for TransformerSeq2seq {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let (ids, lens) = shifted(batch, self.spec.go, self.spec.target)?;
        let time = lens.iter().copied().max().unwrap_or(0);
        check::steps(self.spec.positions, batch.time().max(time))?;
        let input = self.reader.read(tape, params, batch)?;
        let y = self
            .target
            .forward(tape, params, &ids, time, batch.items(), Side::Target);
        let [mut memory, mut y] = [(input, 0), (y, 1)].map(|(v, side)| {
            let v = positions(tape, params, v, self.positions[side]);
            let v = self.norms[side].forward(tape, params, v);
            dropout(tape, v, self.spec.dropout)
        });
        let kind = AttentionKind::Heads(self.spec.heads);
        let (mut attention, mut hidden) = (Vec::new(), Vec::new());
        let sight = Sight {
            queries: batch.lens.clone(),
            keys: batch.lens.clone(),
            causal: false,
        };
        for block in &self.encoder {
            let (out, weights) = block.forward(tape, params, memory, &sight, None);
            memory = out;
            hidden.push(Hidden::source(out));
            attention.extend(weights.into_iter().map(|w| Attention::within(w, kind)));
        }
        let own = Sight {
            queries: lens.clone(),
            keys: lens.clone(),
            causal: true,
        };
        let cross = Sight {
            queries: lens.clone(),
            keys: batch.lens.clone(),
            causal: false,
        };
        for block in &self.decoder {
            let (out, weights) = block.forward(tape, params, y, &own, Some((memory, &cross)));
            y = out;
            hidden.push(Hidden::target(out));
            let sides = [Side::Target, Side::Source];
            attention.extend(
                weights
                    .into_iter()
                    .zip(sides)
                    .map(|(weights, keys)| Attention {
                        weights,
                        kind,
                        queries: Side::Target,
                        keys,
                    }),
            );
        }
        let logits = self.head.forward(tape, params, y);
        Ok(Output {
            attention,
            hidden,
            ..Output::new(input, logits)
        })
    }

    /// Greedy decoding, the model reading its own tokens. Each step reads the whole beginning again.
    fn decode(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        let items = batch.items();
        let mut greedy = GreedyDecoding::new(items, self.spec.eos);
        let mut ids: Vec<u32> = Vec::new();
        for step in 0..most.min(self.spec.positions) {
            tape.reset(Want::NOTHING);
            ids.extend(std::iter::repeat_n(self.spec.eos, items));
            let out = self.forward(tape, params, &with_targets(batch, ids.clone(), step + 1))?;
            let z = &tape.get(out.logits)[step * items * self.spec.target..];
            let (best, more) = greedy.extend(z)?;
            ids[step * items..].copy_from_slice(&best);
            if !more {
                break;
            }
        }
        Ok(greedy.tokens)
    }
}
