//! BERT's weights into the transformer classifier: names and layouts of the published checkpoints.
//!
//! Linear maps are stored (outputs, inputs) there and (inputs, outputs) here. Texts have one segment, so the first
//! segment vector is added to every position. A missing classifier or pooler keeps its fresh weights.

use super::{Transformer, TransformerSpec};
use crate::error::setting;
use crate::layers::{Dense, LayerNorm};
use crate::params::{Params, Span};
use crate::safetensors::Tensors;
use crate::{Error, Result};

/// The specification that fits a checkpoint; the number of heads is not in it (12 for BERT base and MiniLM).
pub fn bert_spec(
    tensors: &Tensors,
    heads: usize,
    classes: usize,
    dropout: f64,
) -> Result<TransformerSpec> {
    let prefix = prefix(tensors);
    let shape = |name: &str| match tensors.shape(&format!("{prefix}{name}"))? {
        [rows, cols] => Ok((*rows, *cols)),
        other => Err(Error::Shape {
            what: "BERT weight",
            expected: "two dimensions".into(),
            got: format!("{other:?} of {name}"),
        }),
    };
    let (vocabulary, dim) = shape("embeddings.word_embeddings.weight")?;
    let (positions, _) = shape("embeddings.position_embeddings.weight")?;
    let (inner, _) = shape("encoder.layer.0.intermediate.dense.weight")?;
    let layers = (0..)
        .take_while(|k| {
            tensors
                .shape(&format!(
                    "{prefix}encoder.layer.{k}.intermediate.dense.weight"
                ))
                .is_ok()
        })
        .count();
    setting(
        "heads",
        heads > 0 && dim.is_multiple_of(heads),
        "a divisor of the checkpoint's dim",
        heads,
    )?;
    let pooler = tensors
        .shape(&format!("{prefix}pooler.dense.weight"))
        .is_ok();
    Ok(TransformerSpec {
        vocabulary,
        positions,
        dim,
        heads,
        inner,
        layers,
        dropout,
        pooler,
        classes,
    })
}

/// Replaces weights of a model built from [`bert_spec`].
pub fn load_bert(
    net: &Transformer,
    params: &mut Params<f32>,
    tensors: &Tensors,
    embedding: Span,
) -> Result<()> {
    let mut load = Load {
        params,
        tensors,
        prefix: prefix(tensors),
    };
    load.rows("embeddings.word_embeddings.weight", embedding)?;
    load.rows("embeddings.position_embeddings.weight", net.positions)?;
    let segment = load.get("embeddings.token_type_embeddings.weight")?;
    let dim = net.positions.cols;
    let segment = segment.get(..dim).ok_or(Error::Shape {
        what: "segment vectors",
        expected: format!("rows of {dim}"),
        got: segment.len().to_string(),
    })?;
    for row in load.params.get_mut(net.positions).chunks_exact_mut(dim) {
        row.iter_mut().zip(segment).for_each(|(p, s)| *p += *s);
    }
    load.norm("embeddings.LayerNorm", &net.norm)?;
    for (k, block) in net.blocks.iter().enumerate() {
        let at = format!("encoder.layer.{k}");
        load.dense(
            &format!("{at}.attention.self.query"),
            &block.attention.query,
        )?;
        load.dense(&format!("{at}.attention.self.key"), &block.attention.key)?;
        load.dense(
            &format!("{at}.attention.self.value"),
            &block.attention.value,
        )?;
        load.dense(
            &format!("{at}.attention.output.dense"),
            &block.attention.out,
        )?;
        load.norm(&format!("{at}.attention.output.LayerNorm"), &block.norm)?;
        load.dense(&format!("{at}.intermediate.dense"), &block.up)?;
        load.dense(&format!("{at}.output.dense"), &block.down)?;
        load.norm(&format!("{at}.output.LayerNorm"), &block.norm_out)?;
    }
    if let Some(pooler) = &net.pooler {
        load.dense("pooler.dense", pooler)?;
    }
    Ok(())
}

/// Checkpoints of fine-tuned models put `bert.` before every name.
fn prefix(tensors: &Tensors) -> &'static str {
    if tensors.names().any(|n| n.starts_with("bert.")) {
        "bert."
    } else {
        ""
    }
}

struct Load<'a, 'b> {
    params: &'a mut Params<f32>,
    tensors: &'a Tensors<'b>,
    prefix: &'static str,
}

impl Load<'_, '_> {
    fn get(&self, name: &str) -> Result<Vec<f32>> {
        self.tensors.get(&format!("{}{name}", self.prefix))
    }

    fn rows(&mut self, name: &str, span: Span) -> Result<()> {
        let values = self.get(name)?;
        self.params.set(span, &values)
    }

    fn norm(&mut self, name: &str, norm: &LayerNorm) -> Result<()> {
        self.rows(&format!("{name}.weight"), norm.scale)?;
        self.rows(&format!("{name}.bias"), norm.shift)
    }

    fn dense(&mut self, name: &str, dense: &Dense) -> Result<()> {
        let (rows, cols) = (dense.weight.rows, dense.weight.cols);
        let values = self.get(&format!("{name}.weight"))?;
        crate::error::same("BERT weight", rows * cols, values.len())?;
        let transposed: Vec<f32> = (0..rows * cols)
            .map(|i| values[i % cols * rows + i / cols])
            .collect();
        self.params.set(dense.weight, &transposed)?;
        dense
            .bias
            .map_or(Ok(()), |bias| self.rows(&format!("{name}.bias"), bias))
    }
}
