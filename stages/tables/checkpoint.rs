//! Weights of other programs as a table: the tensors of a safetensors file, in 32 bits. Knows no model.

use arrow::record_batch::RecordBatch;
use nn::models::tensor_numbers;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::model_card::ModelCard;
use super::weights::{self, Numbers, Tensor};
use crate::Failure;

/// The table of a safetensors file. Tensors of integers, such as positions, are left out; other types than 16- and 32-bit
/// floats are refused.
pub fn from_safetensors(bytes: &[u8]) -> Result<RecordBatch, Failure> {
    let wrong = |why: String| Failure::new(format!("not a safetensors file of weights: {why}"));
    let file = SafeTensors::deserialize(bytes).map_err(|e| wrong(e.to_string()))?;
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        let integers = [Dtype::I64, Dtype::I32, Dtype::U8, Dtype::BOOL];
        if integers.contains(&view.dtype()) {
            continue;
        }
        let shape = match *view.shape() {
            [columns] => [1, columns],
            [rows, columns] => [rows, columns],
            ref other => return Err(wrong(format!("{name} has the shape {other:?}"))),
        };
        let numbers = tensor_numbers(&file, name).map_err(|e| wrong(e.to_string()))?;
        tensors.push(Tensor {
            name: name.to_owned(),
            shape,
            numbers: Numbers::Single(numbers),
        });
    }
    Ok(weights::table(
        &ModelCard::written("checkpoint", &[]),
        &tensors,
    ))
}

/// The same file again, in 32 bits.
pub fn to_safetensors(table: &RecordBatch) -> Result<Vec<u8>, Failure> {
    let (_, tensors) = weights::read(table)?;
    let bytes = |tensor: &Tensor| match &tensor.numbers {
        Numbers::Single(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Numbers::Double(_) | Numbers::Bytes(_) => Vec::new(),
    };
    let data: Vec<(&str, [usize; 2], Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.shape, bytes(tensor)))
        .collect();
    let mut views = Vec::with_capacity(data.len());
    for (name, shape, bytes) in &data {
        let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
        views.push((
            *name,
            view.map_err(|e| Failure::new(format!("{name}: {e}")))?,
        ));
    }
    safetensors::serialize(views, None).map_err(|e| Failure::new(e.to_string()))
}
