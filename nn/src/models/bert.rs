//! BERT's weights into the transformer classifier: names and layouts of the published checkpoints.
//!
//! Linear maps are stored (outputs, inputs) there and (inputs, outputs) here. A model of single texts
//! has no segment vectors: the first one is added to every position. A missing classifier or pooler keeps its fresh weights.

use crate::autodiff::{Params, Span};
use crate::error::{Error, Result, same, setting};
use crate::layers::{Dense, LayerNorm};
use crate::models::model::Model;
use crate::models::transformer::{Transformer, TransformerSpec};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The specification that fits a checkpoint; the number of heads is not in it (12 for BERT base and MiniLM).
pub fn bert_spec(
    tensors: &SafeTensors,
    heads: usize,
    classes: usize,
    dropout: f64,
) -> Result<TransformerSpec> {
    let prefix = prefix(tensors);
    let shape = |name: &str| match find(tensors, &format!("{prefix}{name}"))?.shape() {
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
            let name = format!("{prefix}encoder.layer.{k}.intermediate.dense.weight");
            tensors.tensor(&name).is_ok()
        })
        .count();
    setting(
        "heads",
        heads > 0 && dim.is_multiple_of(heads),
        "a divisor of the checkpoint's dim",
        heads,
    )?;
    let pooler = tensors
        .tensor(&format!("{prefix}pooler.dense.weight"))
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
        separator: None,
    })
}

/// Replaces weights of a transformer classifier built from [`bert_spec`] with those of a checkpoint.
pub fn load_bert(model: &Model, params: &mut Params<f32>, tensors: &SafeTensors) -> Result<()> {
    let place = model
        .network::<Transformer>()
        .zip(model.layout().find("embedding"));
    let (net, embedding) = place.ok_or(Error::Missing {
        what: "layers for BERT's weights",
    })?;
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
    match net.segments {
        Some(table) => load.rows("embeddings.token_type_embeddings.weight", table)?,
        None => {
            for row in load.params.get_mut(net.positions).chunks_exact_mut(dim) {
                row.iter_mut().zip(segment).for_each(|(p, s)| *p += *s);
            }
        }
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
fn prefix(tensors: &SafeTensors) -> &'static str {
    if tensors.names().iter().any(|n| n.starts_with("bert.")) {
        "bert."
    } else {
        ""
    }
}

fn find<'a>(tensors: &'a SafeTensors, name: &str) -> Result<TensorView<'a>> {
    let found = tensors.tensor(name);
    found.map_err(|e| unreadable(format!("{name}: {e}")))
}

fn unreadable(why: String) -> Error {
    Error::Format {
        what: "safetensors",
        why,
    }
}

/// The numbers of a tensor of 16 or 32 bits, in single precision.
pub fn tensor_numbers(tensors: &SafeTensors, name: &str) -> Result<Vec<f32>> {
    let tensor = find(tensors, name)?;
    let (size, convert): (usize, fn(&[u8]) -> f32) = match tensor.dtype() {
        Dtype::F32 => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        Dtype::BF16 => (2, |b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()),
        Dtype::F16 => (2, |b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()),
        other => {
            let why = format!("{name}: type {other:?}, expected F32, F16 or BF16");
            return Err(unreadable(why));
        }
    };
    Ok(tensor.data().chunks_exact(size).map(convert).collect())
}

struct Load<'a, 'b> {
    params: &'a mut Params<f32>,
    tensors: &'a SafeTensors<'b>,
    prefix: &'static str,
}

impl Load<'_, '_> {
    fn get(&self, name: &str) -> Result<Vec<f32>> {
        tensor_numbers(self.tensors, &format!("{}{name}", self.prefix))
    }

    fn rows(&mut self, name: &str, span: Span) -> Result<()> {
        let values = self.get(name)?;
        let set = self.params.set_flat(span, &values);
        set.map_err(|error| self.misfit(name, &error))
    }

    /// A tensor that does not fit, with its name.
    fn misfit(&self, name: &str, error: &Error) -> Error {
        unreadable(format!("{}{name}: {error}", self.prefix))
    }

    fn norm(&mut self, name: &str, norm: &LayerNorm) -> Result<()> {
        self.rows(&format!("{name}.weight"), norm.scale)?;
        self.rows(&format!("{name}.bias"), norm.shift)
    }

    fn dense(&mut self, name: &str, dense: &Dense) -> Result<()> {
        let (rows, cols) = (dense.weight.rows, dense.weight.cols);
        let values = self.get(&format!("{name}.weight"))?;
        let whole = same("numbers", rows * cols, values.len());
        whole.map_err(|error| self.misfit(&format!("{name}.weight"), &error))?;
        let transposed: Vec<f32> = (0..rows * cols)
            .map(|i| values[i % cols * rows + i / cols])
            .collect();
        self.params.set_flat(dense.weight, &transposed)?;
        dense
            .bias
            .map_or(Ok(()), |bias| self.rows(&format!("{name}.bias"), bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut header = header.to_owned();
        // The format wants the numbers aligned.
        header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    #[test]
    fn all_three_types_are_read() {
        let header = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},"c":{"dtype":"F16","shape":[3],"data_offsets":[10,16]}}"#;
        let data = [
            1.5f32.to_le_bytes().as_slice(),
            &(-2.0f32).to_le_bytes(),
            &0x3fc0u16.to_le_bytes(),
            &0x3e00u16.to_le_bytes(),
            &0xc000u16.to_le_bytes(),
            &0x0001u16.to_le_bytes(),
        ]
        .concat();
        let bytes = file(header, &data);
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let get = |name: &str| tensor_numbers(&tensors, name).unwrap();
        assert_eq!(get("a"), [1.5, -2.0]);
        assert_eq!(get("b"), [1.5]);
        assert_eq!(get("c"), [1.5, -2.0, 2f32.powi(-24)]);
    }

    #[test]
    fn other_types_and_missing_tensors_are_errors() {
        let header = r#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#;
        let bytes = file(header, &[0; 8]);
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let say = |name: &str| tensor_numbers(&tensors, name).unwrap_err().to_string();
        assert_eq!(
            say("a"),
            "safetensors: a: type I64, expected F32, F16 or BF16"
        );
        assert!(say("b").starts_with("safetensors: b: "), "{}", say("b"));
    }
}
