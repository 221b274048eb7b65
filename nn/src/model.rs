//! Models by name and parameters: a specification in, a network with its layout of weights out.
//!
//! A network only writes its forward pass; the tape replays it backward.

use crate::batch::{Batch, Carry, Input, Targets};
use crate::error::{finite, same};
use crate::layers::{Embedding, States};
use crate::models::*;
use crate::params::{Init, Layout, Params};
use crate::safetensors::Tensors;
use crate::tape::{Shape, Tape, Var};
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

/// What a forward pass left on the tape.
#[derive(Clone, Debug)]
pub struct Output {
    /// (1, items, classes), or (time, items, vocabulary) for sequence models.
    pub logits: Var,
    /// The vectors that were read, where input gradients arrive.
    pub input: Var,
    /// Recurrent layers in order.
    pub states: Vec<States>,
    /// Attention weights, one value a layer, each with its number of heads.
    pub attention: Vec<Attention>,
    /// What the classifier head reads, (1, items, dim).
    pub sentence: Option<Var>,
    /// Hidden vectors after each layer, where a model has them at every step.
    pub hidden: Vec<Var>,
}

/// Attention weights on the tape.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// The numbers.
    pub weights: Var,
    /// How they are laid out.
    pub kind: AttentionKind,
}

/// The layout of attention weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionKind {
    /// (time, items, 1): one weight a step.
    Pool,
    /// (heads * queries, items, keys), row `(head * queries + query) * items + item`.
    Heads(usize),
}

/// A network and the layout of its weights.
#[derive(Clone, Debug)]
pub struct Model {
    spec: Spec,
    layout: Layout,
    net: Net,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a model, and it is never moved in a loop"
)]
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
        check(batch)?;
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
        check(batch)?;
        match &self.net {
            Net::Seq2seq(net) => net.decode(tape, params, batch, most),
            Net::TransformerSeq2seq(net) => net.decode(tape, params, batch, most),
            _ => Err(Error::Missing { what: "decoder" }),
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

/// The front of a model: a table or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader {
    Table(Embedding),
    Raw(usize),
}

impl Reader {
    pub(crate) fn new(layout: &mut Layout, reads: &Reads, init: Init) -> Result<Self> {
        Ok(match *reads {
            Reads::Tokens {
                vocabulary,
                dim,
                frozen,
            } => {
                crate::error::setting(
                    "vocabulary",
                    vocabulary > 0 && dim > 0,
                    "a size above 0",
                    vocabulary,
                )?;
                Reader::Table(if frozen {
                    Embedding::frozen(layout, "embedding", vocabulary, dim)
                } else {
                    Embedding::new(layout, "embedding", vocabulary, dim, init)
                })
            }
            Reads::Vectors { dim } => Reader::Raw(dim),
        })
    }

    pub(crate) fn dim(&self) -> usize {
        match self {
            Reader::Table(table) => table.table.cols,
            Reader::Raw(dim) => *dim,
        }
    }

    /// The vectors of a batch. A model of tokens also takes vectors: perturbed embeddings.
    pub(crate) fn read<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Var> {
        let (time, items) = (batch.time(), batch.items());
        match (self, &batch.input) {
            (Reader::Table(table), Input::Tokens(ids)) => {
                tokens(ids, items, table.table.rows)?;
                Ok(table.forward(tape, params, ids, time, items))
            }
            (_, Input::Vectors(data, dim)) => {
                same("numbers in a step", self.dim(), *dim)?;
                same("input", time * items * dim, data.len())?;
                finite("input", data)?;
                Ok(tape.input(Shape::new(time, items, *dim), data))
            }
            (Reader::Raw(_), _) => Err(Error::Shape {
                what: "input",
                expected: "vectors".into(),
                got: "ids".into(),
            }),
            (Reader::Table(_), _) => Err(Error::Shape {
                what: "input",
                expected: "tokens or vectors".into(),
                got: "characters".into(),
            }),
        }
    }
}

/// An error at the first id that the table lacks.
pub(crate) fn tokens(ids: &[u32], items: usize, below: usize) -> Result<()> {
    match ids.iter().position(|id| *id as usize >= below) {
        None => Ok(()),
        Some(i) => Err(Error::Range {
            what: "token",
            item: i % items.max(1),
            got: ids[i] as usize,
            below,
        }),
    }
}

/// Sizes that must agree in any batch.
fn check<T: Real>(batch: &Batch<T>) -> Result<()> {
    let (time, items) = (batch.time(), batch.items());
    if items == 0 {
        return Err(Error::Empty { what: "batch" });
    }
    if batch.lens.contains(&0) {
        return Err(Error::Empty { what: "sequence" });
    }
    let (width, got) = match &batch.input {
        Input::Tokens(ids) => (1, ids.len()),
        Input::Vectors(data, dim) => (*dim, data.len()),
        Input::Chars(ids, width) => (*width, ids.len()),
    };
    same("input", time * items * width, got)?;
    match &batch.targets {
        Targets::None => Ok(()),
        Targets::Classes(classes) => same("targets", items, classes.len()),
        Targets::Tokens(ids, lens) => {
            same("target lengths", items, lens.len())?;
            same(
                "targets",
                lens.iter().max().unwrap_or(&0) * items,
                ids.len(),
            )
        }
    }
}
