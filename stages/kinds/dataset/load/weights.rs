//! Pre-trained weights: a safetensors file as a table of tensors.

use arrow::record_batch::RecordBatch;

use super::opened::{bytes, unexpected};
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::tables::checkpoint;

/// `name, shape, values`, in the order of names.
pub fn safetensors(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let whole = bytes(&mut files[0])?;
    checkpoint::from_safetensors(&whole)
        .map_err(|error| unexpected(&files[0].entry.path, 0, &error.message))
}
