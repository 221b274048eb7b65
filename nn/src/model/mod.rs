//! Models by name and parameters: a specification in, a network with its layout of weights out.
//!
//! A network only writes its forward pass; the tape replays it backward.

mod check;
mod output;
mod reader;

pub use output::{Attention, AttentionKind, Hidden, Output};
pub(crate) use reader::{Reader, tokens};

use crate::batch::{Batch, Carry};
use crate::models::*;
use crate::params::{Layout, Params};
use crate::safetensors::Tensors;
use crate::tape::{Tape, Var};
use crate::{Error, Real, Result};
use serde::{Deserialize, Serialize};

/// Every model that can be built, with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Spec {
    /// RNN, GRU or LSTM classifier; stacked, both directions, attention.
    Recurrent(RecurrentSpec),
    /// Word windows of several widths.
    KimCnn(KimCnnSpec),
    /// Characters, windows, highways, LSTM.
    CharCnn(CharCnnSpec),
    /// Transformer encoder classifier, BERT's network.
    Transformer(TransformerSpec),
    /// LSTM language model.
    Language(LanguageSpec),
    /// LSTM encoder and decoder with attention.
    Seq2seq(Seq2seqSpec),
    /// Transformer encoder and decoder.
    TransformerSeq2seq(TransformerSeq2seqSpec),
}

/// What a model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reads {
    /// Token ids through a table of vectors.
    Tokens {
        /// Rows of the table.
        vocabulary: usize,
        /// Numbers in a vector.
        dim: usize,
        /// Whether training leaves the table alone.
        #[serde(default)]
        frozen: bool,
    },
    /// Vectors as they are.
    Vectors {
        /// Numbers in a step.
        dim: usize,
    },
}

/// A network and the layout of its weights.
#[derive(Clone, Debug)]
pub struct Model {
    spec: Spec,
    layout: Layout,
    net: Net,
}

#[derive(Clone, Debug)]
enum Net {
    Recurrent(Recurrent),
    KimCnn(KimCnn),
    CharCnn(CharCnn),
    Transformer(Transformer),
    Language(Language),
    Seq2seq(Seq2seq),
    TransformerSeq2seq(TransformerSeq2seq),
}

impl Model {
    /// Builds the network of a specification.
    pub fn new(spec: &Spec) -> Result<Self> {
        let mut layout = Layout::default();
        let l = &mut layout;
        let net = match spec {
            Spec::Recurrent(s) => Net::Recurrent(Recurrent::new(l, s)?),
            Spec::KimCnn(s) => Net::KimCnn(KimCnn::new(l, s)?),
            Spec::CharCnn(s) => Net::CharCnn(CharCnn::new(l, s)?),
            Spec::Transformer(s) => Net::Transformer(Transformer::new(l, s)?),
            Spec::Language(s) => Net::Language(Language::new(l, s)?),
            Spec::Seq2seq(s) => Net::Seq2seq(Seq2seq::new(l, s)?),
            Spec::TransformerSeq2seq(s) => Net::TransformerSeq2seq(TransformerSeq2seq::new(l, s)?),
        };
        layout.check()?;
        Ok(Model {
            spec: spec.clone(),
            layout,
            net,
        })
    }

    /// What it was built from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The names and shapes of its weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Fresh weights.
    pub fn init<T: Real>(&self, seed: u64) -> Params<T> {
        let mut params = self.layout.init(seed);
        if let Net::Recurrent(net) = &self.net {
            net.adjust(&mut params);
        }
        params
    }

    /// Runs forward; gradients follow when an objective has been applied.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Output> {
        params.check(&self.layout)?;
        check::sizes(batch)?;
        check::targets(&self.spec, batch)?;
        match &self.net {
            Net::Recurrent(net) => net.forward(tape, params, batch),
            Net::KimCnn(net) => net.forward(tape, params, batch),
            Net::CharCnn(net) => net.forward(tape, params, batch),
            Net::Transformer(net) => net.forward(tape, params, batch),
            Net::Language(net) => net.forward(tape, params, batch),
            Net::Seq2seq(net) => net.forward(tape, params, batch),
            Net::TransformerSeq2seq(net) => net.forward(tape, params, batch),
        }
    }

    /// What a sequence-to-sequence model answers, greedily: up to `most` tokens an item, without the end token.
    pub fn decode<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
        most: usize,
    ) -> Result<Vec<Vec<u32>>> {
        params.check(&self.layout)?;
        check::sizes(batch)?;
        match &self.net {
            Net::Seq2seq(net) => net.decode(tape, params, batch, most),
            Net::TransformerSeq2seq(net) => net.decode(tape, params, batch, most),
            _ => Err(Error::Missing { what: "decoder" }),
        }
    }

    /// For models that say a sequence of their own: the token that ends it, and the most steps it may have.
    pub fn speaks(&self) -> Option<(u32, usize)> {
        match &self.spec {
            Spec::Seq2seq(s) => Some((s.eos, usize::MAX)),
            Spec::TransformerSeq2seq(s) => Some((s.eos, s.positions)),
            _ => None,
        }
    }

    /// Logits at a step: classes, or tokens.
    pub fn outputs(&self) -> usize {
        match &self.spec {
            Spec::Recurrent(s) => s.classes,
            Spec::KimCnn(s) => s.classes,
            Spec::CharCnn(s) => s.classes,
            Spec::Transformer(s) => s.classes,
            Spec::Language(s) => s.vocabulary,
            Spec::Seq2seq(s) => s.target,
            Spec::TransformerSeq2seq(s) => s.target,
        }
    }

    /// Replaces the weights of a transformer classifier with those of a BERT checkpoint.
    pub fn load_bert(&self, params: &mut Params<f32>, tensors: &Tensors) -> Result<()> {
        match (&self.net, self.layout.find("embedding")) {
            (Net::Transformer(net), Some(embedding)) => load_bert(net, params, tensors, embedding),
            _ => Err(Error::Missing {
                what: "place for BERT's weights",
            }),
        }
    }

    /// Brings weights back to where the model wants them after an update.
    pub(crate) fn constrain<T: Real>(&self, params: &mut Params<T>) {
        if let Net::KimCnn(net) = &self.net {
            net.constrain(params);
        }
    }

    /// The recurrent classifier inside, for whoever works step by step.
    pub(crate) fn recurrent(&self) -> Result<&Recurrent> {
        if let Net::Recurrent(net) = &self.net {
            Ok(net)
        } else {
            Err(Error::Missing {
                what: "recurrent layers to step through",
            })
        }
    }

    /// The states after the last step, to start the next batch from.
    pub fn carry<T: Real>(&self, tape: &Tape<T>, out: &Output) -> Carry<T> {
        let end = |v: Var| {
            let shape = tape.shape(v);
            tape.get(v)[(shape.time - 1) * shape.batch * shape.dim..].to_vec()
        };
        out.states
            .iter()
            .map(|s| (end(s.h), s.c.map(end).unwrap_or_default()))
            .collect()
    }
}
