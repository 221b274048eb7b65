//! The table `vectors`: a vector for each token of a vocabulary.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int32Array, ListArray, StringArray,
};
use arrow::datatypes::{DataType, Field, Float32Type, Metadata};
use arrow::record_batch::RecordBatch;
use nn::linear::Vectors;

use super::schema::table;
use super::weights::with_metadata;
use crate::Failure;

table!("vectors", "embed", "A row for each token of the vocabulary, in the order of ids.", {
    ID = "id": "int32", "The id of the token.";
    TOKEN = "token": "string", "The token.";
    V = "v": "fixed list of float32", "Its vector.";
    NORM = "norm": "float32", "The L2 norm of the vector.";
});

/// Rows of equal length, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// How long a row is.
    pub dim: usize,
    /// All rows.
    pub values: Vec<f32>,
}

impl Matrix {
    /// One row.
    pub fn row(&self, n: usize) -> &[f32] {
        &self.values[n * self.dim..(n + 1) * self.dim]
    }
}

/// Vectors of words, from the output of an embed stage.
pub fn read(table: &RecordBatch) -> Result<Vectors, Failure> {
    let wrong = || {
        Failure::new("the input `vectors` has no column `v` of fixed lists of 32-bit floats")
            .help("connect the output `vectors` of an embed stage")
    };
    let column = table.column_by_name(V).ok_or_else(wrong)?;
    let lists = column.as_fixed_size_list_opt().ok_or_else(wrong)?;
    let values = lists.values().as_primitive_opt::<Float32Type>();
    let values = values.ok_or_else(wrong)?.values();
    let dim = lists.value_length() as usize;
    let from = lists.value_offset_at(0);
    if lists.null_count() > 0 || dim == 0 {
        return Err(wrong());
    }
    Ok(Vectors {
        dim,
        data: Arc::from(&values[from..from + lists.len() * dim]),
    })
}

/// The column `v` of a table: lists of one length.
pub fn read_any(table: &RecordBatch) -> Result<Matrix, Failure> {
    let wrong = || {
        Failure::new("the input `vectors` has no column `v` of lists of 32-bit floats")
            .help("connect a data set of vectors, or the output of another embed stage")
    };
    let column = table.column_by_name(V).ok_or_else(wrong)?;
    if column.null_count() > 0 {
        return Err(wrong());
    }
    if let Some(lists) = column.as_fixed_size_list_opt() {
        let values = lists
            .values()
            .as_primitive_opt::<Float32Type>()
            .ok_or_else(wrong)?;
        let dim = lists.value_length() as usize;
        let start = lists.value_offset_at(0);
        return Ok(Matrix {
            dim,
            values: values.values()[start..start + lists.len() * dim].to_vec(),
        });
    }
    let lists: &ListArray = column.as_list_opt().ok_or_else(wrong)?;
    let values = lists
        .values()
        .as_primitive_opt::<Float32Type>()
        .ok_or_else(wrong)?;
    let offsets = lists.value_offsets();
    let dim = offsets
        .get(1)
        .map_or(0, |second| (second - offsets[0]) as usize);
    if let Some(row) = offsets
        .windows(2)
        .position(|o| (o[1] - o[0]) as usize != dim)
    {
        return Err(Failure::new(format!(
            "the vector in row {row} has another dimension than the first, {dim}"
        )));
    }
    let (start, end) = (offsets[0] as usize, offsets[lists.len()] as usize);
    Ok(Matrix {
        dim,
        values: values.values()[start..end].to_vec(),
    })
}

/// The vectors of these tokens as a table.
pub fn write(
    tokens: StringArray,
    matrix: Matrix,
    metadata: Metadata,
) -> Result<RecordBatch, Failure> {
    let dim = i32::try_from(matrix.dim).map_err(|_| Failure::new("vectors are too long"))?;
    let rows = tokens.len();
    let norms = (0..rows).map(|n| {
        let squares = matrix.row(n).iter().map(|x| f64::from(*x) * f64::from(*x));
        squares.sum::<f64>().sqrt() as f32
    });
    let norms = Float32Array::from_iter_values(norms);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let values = Arc::new(Float32Array::from(matrix.values));
    let v = FixedSizeListArray::new(item, dim, values, None);
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ID, Arc::new(Int32Array::from_iter_values(0..rows as i32))),
        (TOKEN, Arc::new(tokens)),
        (V, Arc::new(v)),
        (NORM, Arc::new(norms)),
    ];
    Ok(with_metadata(columns, metadata))
}
