//! Models as tables: a row for each tensor, and the card that says how to build the model again.
//! Reads and writes safetensors too. Knows nothing of training or attacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array,
    LargeBinaryArray, ListArray, StringArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int32Type, Metadata, Schema};
use arrow::record_batch::RecordBatch;
use store::Digest;

use super::model_card::ModelCard;
use super::schema::table;
use crate::Failure;

/// One tensor: rows of numbers. Networks have 32 bits, counts and linear machines 64.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// 32 bits.
    Single(Vec<f32>),
    /// 64 bits.
    Double(Vec<f64>),
    /// Bytes of a file, of models that live in a program.
    Bytes(Vec<u8>),
}

/// A named tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Rows and columns.
    pub shape: [usize; 2],
    /// The numbers, row after row.
    pub numbers: Numbers,
}

table!("weights", "train", "A row for each tensor, in the order of names. The metadata (`ablate.model`) is the model card.", {
    NAME = "name": "string", "The name of the tensor.";
    SHAPE = "shape": "two int32", "Rows and columns.";
    VALUES = "values": "list of float32, float64", "The numbers, row after row: 32-bit floats of networks, 64-bit ones of naive Bayes and linear machines; of external models the bytes of their files.";
});

/// The metadata key of the card.
const CARD: &str = "ablate.model";

/// `name, shape, values`, in the order of names, with the card in the metadata.
pub fn table(card: &ModelCard, tensors: &[Tensor]) -> RecordBatch {
    let mut tensors: Vec<&Tensor> = tensors.iter().collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let names = StringArray::from_iter_values(tensors.iter().map(|t| t.name.as_str()));
    let shape: Vec<i32> = tensors
        .iter()
        .flat_map(|t| t.shape.map(|n| n as i32))
        .collect();
    let shape = FixedSizeListArray::new(
        Arc::new(Field::new("item", DataType::Int32, true)),
        2,
        Arc::new(Int32Array::from(shape)),
        None,
    );
    if let Some(files) = files(&tensors) {
        return described(card, names, shape, files);
    }
    let double = tensors
        .iter()
        .any(|t| matches!(t.numbers, Numbers::Double(_)));
    let mut ends = vec![0i32];
    for tensor in &tensors {
        ends.push(ends[ends.len() - 1] + (tensor.shape[0] * tensor.shape[1]) as i32);
    }
    let numbers: ArrayRef = if double {
        let all = tensors.iter().flat_map(|t| match &t.numbers {
            Numbers::Single(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Numbers::Double(v) => v.clone(),
            Numbers::Bytes(_) => Vec::new(),
        });
        Arc::new(Float64Array::from_iter_values(all))
    } else {
        let all = tensors.iter().flat_map(|t| match &t.numbers {
            Numbers::Single(v) => v.as_slice(),
            Numbers::Double(_) | Numbers::Bytes(_) => &[],
        });
        Arc::new(Float32Array::from_iter_values(all.copied()))
    };
    let values = ListArray::new(
        Arc::new(Field::new("item", numbers.data_type().clone(), true)),
        OffsetBuffer::new(ScalarBuffer::from(ends)),
        numbers,
        None,
    );
    described(card, names, shape, Arc::new(values))
}

fn described(
    card: &ModelCard,
    names: StringArray,
    shape: FixedSizeListArray,
    values: ArrayRef,
) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (NAME, Arc::new(names)),
        (SHAPE, Arc::new(shape)),
        (VALUES, values),
    ];
    let card = (CARD.to_owned(), card.text().to_owned());
    with_metadata(columns, [card].into_iter().collect())
}

/// The bytes of files, if these are files.
fn files(tensors: &[&Tensor]) -> Option<ArrayRef> {
    let bytes = |tensor: &&Tensor| match &tensor.numbers {
        Numbers::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    };
    let files: Option<Vec<Vec<u8>>> = tensors.iter().map(bytes).collect();
    let files = files.filter(|files| !files.is_empty())?;
    Some(Arc::new(LargeBinaryArray::from_iter_values(files)))
}

/// A table of columns that may be null, with metadata.
pub fn with_metadata(columns: Vec<(&str, ArrayRef)>, metadata: Metadata) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let schema = Schema::new(fields).with_metadata(metadata);
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
}

/// The card and the tensors of a table.
pub fn read(table: &RecordBatch) -> Result<(ModelCard, BTreeMap<String, Tensor>), Failure> {
    let wrong = |why: &str| {
        Failure::new(format!("this table is not a trained model: {why}"))
            .help("connect the output `weights` of a train stage")
    };
    let schema = table.schema();
    let card = schema.metadata().get(CARD);
    let card = card.ok_or_else(|| wrong("its metadata has no model card"))?;
    let card = ModelCard::parse(card).map_err(|e| wrong(&e))?;
    let names = table.column_by_name(NAME);
    let names = names.and_then(|c| c.as_string_opt::<i32>());
    let shapes = table.column_by_name(SHAPE);
    let shapes = shapes.and_then(|c| c.as_fixed_size_list_opt());
    let values = table.column_by_name(VALUES);
    if let (Some(names), Some(bytes)) = (names, values.and_then(bytes)) {
        return Ok((card, of_files(names, bytes)));
    }
    let values = values.and_then(|c| c.as_list_opt::<i32>());
    let (Some(names), Some(shapes), Some(values)) = (names, shapes, values) else {
        return Err(wrong("it has no columns name, shape and values"));
    };
    let mut tensors = BTreeMap::new();
    for row in 0..table.num_rows() {
        let shape = shapes.value(row);
        let shape = shape
            .as_primitive_opt::<Int32Type>()
            .and_then(|s| <[i32; 2]>::try_from(s.values().as_ref()).ok())
            .ok_or_else(|| wrong("a shape is not two integers"))?
            .map(|n| n as usize);
        let list = values.value(row);
        let numbers = if let Some(v) = list.as_primitive_opt::<Float32Type>() {
            Numbers::Single(v.values().to_vec())
        } else if let Some(v) = list.as_primitive_opt::<Float64Type>() {
            Numbers::Double(v.values().to_vec())
        } else {
            return Err(wrong("its values are not floats"));
        };
        if list.len() != shape[0] * shape[1] {
            return Err(wrong("a tensor has not the size of its shape"));
        }
        let name = names.value(row).to_owned();
        tensors.insert(
            name.clone(),
            Tensor {
                name,
                shape,
                numbers,
            },
        );
    }
    Ok((card, tensors))
}

/// The files of a column of bytes, whatever its offsets: stores may hand back smaller ones.
fn bytes(column: &ArrayRef) -> Option<Vec<Vec<u8>>> {
    let large = column.as_binary_opt::<i64>();
    let small = || column.as_binary_opt::<i32>();
    match large {
        Some(files) => Some(files.iter().flatten().map(<[u8]>::to_vec).collect()),
        None => Some(small()?.iter().flatten().map(<[u8]>::to_vec).collect()),
    }
}

fn of_files(names: &StringArray, files: Vec<Vec<u8>>) -> BTreeMap<String, Tensor> {
    let names = names.iter().flatten().map(str::to_owned);
    let tensor = |(name, bytes): (String, Vec<u8>)| {
        let tensor = Tensor {
            name: name.clone(),
            shape: [1, bytes.len()],
            numbers: Numbers::Bytes(bytes),
        };
        (name, tensor)
    };
    names.zip(files).map(tensor).collect()
}

/// The digest of a table of vectors: it ties a model to what it was trained with.
pub fn digest(vectors: &[f32]) -> String {
    let bytes: Vec<u8> = vectors.iter().flat_map(|x| x.to_le_bytes()).collect();
    Digest::of(&bytes).to_string()
}

/// The tensors of a table as a safetensors file, with the card in its metadata.
pub fn to_safetensors(table: &RecordBatch) -> Result<Vec<u8>, Failure> {
    let (card, tensors) = read(table)?;
    let data: Vec<(String, Vec<usize>, safetensors::Dtype, Vec<u8>)> = tensors
        .into_values()
        .map(|t| {
            let (dtype, bytes) = match &t.numbers {
                Numbers::Single(v) => (
                    safetensors::Dtype::F32,
                    v.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ),
                Numbers::Double(v) => (
                    safetensors::Dtype::F64,
                    v.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ),
                Numbers::Bytes(v) => (safetensors::Dtype::U8, v.clone()),
            };
            (t.name, t.shape.to_vec(), dtype, bytes)
        })
        .collect();
    let views = data.iter().map(|(name, shape, dtype, bytes)| {
        let view = safetensors::tensor::TensorView::new(*dtype, shape.clone(), bytes);
        (name.as_str(), view.expect("the shape was checked"))
    });
    let metadata = [(CARD.to_owned(), card.text().to_owned())].into();
    safetensors::serialize(views, Some(metadata)).map_err(|e| Failure::new(e.to_string()))
}

/// The table of a safetensors file that [`to_safetensors`] wrote.
pub fn from_safetensors(bytes: &[u8]) -> Result<RecordBatch, Failure> {
    let wrong = |why: String| Failure::new(format!("not a safetensors file of ablate: {why}"));
    let (_, header) =
        safetensors::SafeTensors::read_metadata(bytes).map_err(|e| wrong(e.to_string()))?;
    let card = header.metadata().as_ref().and_then(|m| m.get(CARD));
    let card = card.ok_or_else(|| wrong("its metadata has no model card".to_owned()))?;
    let card = ModelCard::parse(card).map_err(wrong)?;
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| wrong(e.to_string()))?;
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        let shape = <[usize; 2]>::try_from(view.shape())
            .map_err(|_| wrong(format!("{name} has the shape {:?}", view.shape())))?;
        let data = view.data();
        let numbers = match view.dtype() {
            safetensors::Dtype::F32 => Numbers::Single(
                data.as_chunks::<4>()
                    .0
                    .iter()
                    .map(|b| f32::from_le_bytes(*b))
                    .collect(),
            ),
            safetensors::Dtype::F64 => Numbers::Double(
                data.as_chunks::<8>()
                    .0
                    .iter()
                    .map(|b| f64::from_le_bytes(*b))
                    .collect(),
            ),
            other => return Err(wrong(format!("{name} holds {other:?}"))),
        };
        tensors.push(Tensor {
            name: name.to_owned(),
            shape,
            numbers,
        });
    }
    Ok(table(&card, &tensors))
}
