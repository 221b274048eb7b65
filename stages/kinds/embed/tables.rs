//! The tables that `embed` reads and makes: vocabularies, tokens, vectors.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int32Array, ListArray, StringArray,
};
use arrow::datatypes::{DataType, Field, Float32Type, Int32Type, Int64Type, Metadata, Schema};
use arrow::record_batch::RecordBatch;

use crate::Failure;

/// The token that stands for nothing: its vector is always zero.
pub const PAD: &str = "[PAD]";
/// The token that stands for words that are not in the vocabulary.
pub const UNKNOWN: &str = "[UNK]";

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

/// The output `vocab` of a tokenize stage.
pub struct Vocab {
    /// The tokens; the id of each is its place.
    pub tokens: StringArray,
    /// How often each is in the training split.
    pub counts: Option<Vec<i64>>,
}

impl Vocab {
    /// Reads the table, which must count its ids from 0.
    pub fn read(table: &RecordBatch) -> Result<Vocab, Failure> {
        let tokens = words(table, "vocab")?;
        let ids = table
            .column_by_name("id")
            .and_then(|c| c.as_primitive_opt::<Int32Type>());
        let in_order = |ids: &Int32Array| ids.values().iter().copied().eq(0..ids.len() as i32);
        if !ids.is_some_and(in_order) {
            return Err(Failure::new(
                "the vocabulary's column `id` does not count 0, 1, 2, … as 32-bit numbers",
            )
            .help("connect the output `vocab` of a tokenize stage"));
        }
        let counts = table.column_by_name("count");
        let counts = counts.and_then(|c| c.as_primitive_opt::<Int64Type>());
        Ok(Vocab {
            tokens,
            counts: counts.map(|counts| counts.values().to_vec()),
        })
    }

    /// The place of a token.
    pub fn place(&self, token: &str) -> Option<usize> {
        self.tokens.iter().position(|known| known == Some(token))
    }
}

/// The column `token` or `word` of a table.
pub fn words(table: &RecordBatch, port: &str) -> Result<StringArray, Failure> {
    let found = table
        .column_by_name("token")
        .or_else(|| table.column_by_name("word"))
        .and_then(|column| column.as_string_opt::<i32>());
    match found {
        Some(words) if words.null_count() == 0 => Ok(words.clone()),
        _ => Err(Failure::new(format!(
            "the input `{port}` has no column `token` or `word` of text without nulls"
        ))),
    }
}

/// The column `v` of a table: lists of one length.
pub fn vectors(table: &RecordBatch) -> Result<Matrix, Failure> {
    let wrong = || {
        Failure::new("the input `vectors` has no column `v` of lists of 32-bit floats")
            .help("connect a data set of vectors, or the output of another embed stage")
    };
    let column = table.column_by_name("v").ok_or_else(wrong)?;
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
            "the vector in row {row} is not as long as the first, which has {dim} numbers"
        )));
    }
    let (start, end) = (offsets[0] as usize, offsets[lists.len()] as usize);
    Ok(Matrix {
        dim,
        values: values.values()[start..end].to_vec(),
    })
}

/// `id, token, v, norm`.
pub fn output(
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
        ("id", Arc::new(Int32Array::from_iter_values(0..rows as i32))),
        ("token", Arc::new(tokens)),
        ("v", Arc::new(v)),
        ("norm", Arc::new(norms)),
    ];
    let fields = columns.iter();
    let fields: Vec<Field> = fields
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let schema = Schema::new(fields).with_metadata(metadata);
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length"))
}
