//! Transformer encoder classifier: tokens + positions -> norm -> blocks -> first step -> [tanh layer] -> logits.
//!
//! BERT's network (Devlin et al. 2019, arXiv:1810.04805), from scratch or with loaded weights. The first token should be
//! the classification token. One text has no segment vectors: BERT's is part of the positions. Pairs of texts are one
//! sequence with a separator, and have two.

use crate::autodiff::{Init, Layout, Params, Span, Tape, Var};
use crate::batch::{Batch, Input};
use crate::error::{Error, Result};
use crate::layers::{
    Activation, Block, BlockSize, Dense, Direction, LayerNorm, Sight, activate, dropout, last,
    positions, segment_ids, segments,
};
use crate::models::check;
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec, TargetKind};
use crate::models::output::{Attention, AttentionKind, Hidden, Output};
use crate::models::reader::Reader;
use crate::models::settings;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerSpec {
    /// Tokens.
    pub vocabulary: usize,
    /// Maximum number of steps of an item.
    pub positions: usize,
    /// Model dimension.
    pub dim: usize,
    /// Heads; must divide `dim`.
    pub heads: usize,
    /// Feed-forward dimension.
    pub inner: usize,
    /// Blocks.
    pub layers: usize,
    /// Dropout of the vectors, after each part of a block, and before the logits.
    #[serde(default)]
    pub dropout: f64,
    /// Whether a tanh layer comes before the logits, as in BERT.
    #[serde(default)]
    pub pooler: bool,
    /// Classes.
    pub classes: usize,
    /// For pairs of texts with segment vectors: the token behind which the second text begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<u32>,
}

/// The network.
#[derive(Clone, Debug)]
pub struct Transformer {
    pub(crate) spec: TransformerSpec,
    reader: Reader,
    pub(crate) positions: Span,
    pub(crate) segments: Option<Span>,
    pub(crate) norm: LayerNorm,
    pub(crate) blocks: Vec<Block>,
    pub(crate) pooler: Option<Dense>,
    head: Dense,
}

/// BERT's.
pub(crate) const EPS: f64 = 1e-12;

impl NetworkSpec for TransformerSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        settings::sizes(&[
            ("vocabulary", spec.vocabulary),
            ("positions", spec.positions),
            ("dim", spec.dim),
            ("inner", spec.inner),
            ("layers", spec.layers),
        ])?;
        settings::heads(spec.heads, spec.dim)?;
        settings::classes(spec.classes)?;
        settings::dropout(spec.dropout)?;
        let init = Init::Truncated(0.02);
        let reader = Reader::tokens(layout, spec.vocabulary, spec.dim, init)?;
        let positions = layout.add("positions", spec.positions, spec.dim, init);
        let segments = spec.separator;
        let segments = segments.map(|_| layout.add("segments", 2, spec.dim, init));
        let norm = LayerNorm::new(layout, "norm", spec.dim, EPS);
        let size = BlockSize {
            dim: spec.dim,
            heads: spec.heads,
            inner: spec.inner,
            activation: Activation::Gelu,
            dropout: spec.dropout,
            eps: EPS,
        };
        let blocks = (0..spec.layers)
            .map(|k| Block::encoder(layout, &format!("block.{k}"), size, init))
            .collect();
        let pooler = spec
            .pooler
            .then(|| Dense::new(layout, "pooler", spec.dim, spec.dim, init));
        let head = Dense::new(layout, "head", spec.dim, spec.classes, init);
        Ok(Arc::new(Transformer {
            spec: spec.clone(),
            reader,
            positions,
            segments,
            norm,
            blocks,
            pooler,
            head,
        }))
    }
}

impl Network for Transformer {
    fn info(&self) -> NetworkInfo {
        NetworkInfo::new(
            "transformer",
            &self.spec,
            TargetKind::Class,
            self.spec.classes,
        )
    }
}

impl Transformer {
    /// Adds segment vectors, if there are any.
    fn with_segments<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        x: Var,
    ) -> Result<Var> {
        let Some((table, separator)) = self.segments.zip(self.spec.separator) else {
            return Ok(x);
        };
        let ids = match &batch.input {
            Input::Tokens(ids) => ids,
            _ if !batch.tokens.is_empty() => &batch.tokens,
            _ => {
                return Err(Error::Missing {
                    what: "separator among vectors: pairs of texts are read as tokens",
                });
            }
        };
        let ids = segment_ids(ids, batch.items(), separator);
        Ok(segments(tape, params, x, table, ids))
    }
}

impl Transformer {
    /// Through all blocks, or through all but what the first step of the last one does not need.
    fn run<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        whole: bool,
    ) -> Result<Output> {
        let input = self.reader.read(tape, params, batch)?;
        check::steps(self.spec.positions, batch.time())?;
        let x = positions(tape, params, input, self.positions);
        let x = self.with_segments(tape, params, batch, x)?;
        let x = self.norm.forward(tape, params, x);
        let mut x = dropout(tape, x, self.spec.dropout);
        let sight = Sight {
            queries: batch.lens.clone(),
            keys: batch.lens.clone(),
            causal: false,
        };
        let (mut attention, mut hidden) = (Vec::new(), vec![Hidden::source(x)]);
        for (k, block) in self.blocks.iter().enumerate() {
            if !whole && k + 1 == self.blocks.len() {
                let (first, _) = block.first(tape, params, x, &batch.lens);
                return Ok(self.classified(tape, params, input, first));
            }
            let (y, weights) = block.forward(tape, params, x, &sight, None);
            x = y;
            hidden.push(Hidden::source(x));
            let kind = AttentionKind::Heads(self.spec.heads);
            attention.extend(weights.into_iter().map(|w| Attention::within(w, kind)));
        }
        // The state "after the last step read" of a backward reading is that of step 0.
        let first = last(tape, x, Direction::Backward);
        Ok(Output {
            attention,
            hidden,
            ..self.classified(tape, params, input, first)
        })
    }

    /// From the first step's vector to the logits.
    fn classified<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        input: Var,
        first: Var,
    ) -> Output {
        let sentence = match &self.pooler {
            Some(pooler) => {
                let y = pooler.forward(tape, params, first);
                activate(tape, y, Activation::Tanh)
            }
            None => first,
        };
        let y = dropout(tape, sentence, self.spec.dropout);
        let logits = self.head.forward(tape, params, y);
        Output {
            sentence: Some(sentence),
            ..Output::new(input, logits)
        }
    }
}

impl<T: Real> Forward<T> for Transformer {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        self.run(tape, params, batch, true)
    }

    fn answer(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        self.run(tape, params, batch, false)
    }
}
