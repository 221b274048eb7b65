//! `ablate show VECTORS --nearest WORD`: the words whose vectors point the same way.
//! Knows nothing of the store: it is handed a table.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use arrow::record_batch::RecordBatch;
use serde_json::json;

use super::exit::Exit;
use super::print::out;
use crate::diagnostic::{Diagnostic, nearest};

/// Prints the nearest words of a table of vectors, the nearest first.
pub fn print(
    table: &RecordBatch,
    label: &str,
    word: &str,
    rows: usize,
    json: bool,
) -> Result<(), Exit> {
    let vectors = Vectors::of(table).ok_or_else(|| {
        Diagnostic::new(format!("`{label}` has no vectors")).help(
            "--nearest needs columns `token` (or `word`) and `v`, as a stage of kind embed produces",
        )
    })?;
    let Some(at) = vectors.words.iter().position(|known| *known == word) else {
        let known = vectors.words.iter().copied();
        return Err(Diagnostic::new(format!("`{label}` has no word `{word}`"))
            .maybe_help(nearest(word, known))
            .into());
    };
    for (other, cosine) in vectors.nearest(at, rows) {
        let other = vectors.words[other];
        match json {
            true => out!("{}", json!({ "word": other, "cosine": cosine })),
            false => out!("{cosine:>7.4}  {other}"),
        }
    }
    Ok(())
}

struct Vectors<'a> {
    words: Vec<&'a str>,
    values: &'a [f32],
    dim: usize,
}

impl<'a> Vectors<'a> {
    fn of(table: &'a RecordBatch) -> Option<Vectors<'a>> {
        let words = table
            .column_by_name(stages::tables::vectors::TOKEN)
            .or_else(|| table.column_by_name("word"))?;
        let words: Vec<&str> = words
            .as_string_opt::<i32>()?
            .iter()
            .collect::<Option<_>>()?;
        let lists = table.column_by_name("v")?;
        if lists.null_count() > 0 {
            return None;
        }
        let (values, start, dim) = match lists.as_fixed_size_list_opt() {
            Some(lists) => {
                let dim = lists.value_length() as usize;
                (lists.values(), lists.offset() * dim, dim)
            }
            None => {
                let lists = lists.as_list_opt::<i32>()?;
                let offsets = lists.value_offsets();
                let dim = offsets.get(1)? - offsets[0];
                if offsets.windows(2).any(|pair| pair[1] - pair[0] != dim) {
                    return None;
                }
                (lists.values(), offsets[0] as usize, dim as usize)
            }
        };
        let values = values.as_primitive_opt::<Float32Type>()?.values();
        Some(Vectors {
            values: values.get(start..start + words.len() * dim)?,
            words,
            dim,
        })
    }

    fn row(&self, n: usize) -> &[f32] {
        &self.values[n * self.dim..(n + 1) * self.dim]
    }

    /// The nearest others by cosine. A vector of zeros has no direction and is near to nothing.
    fn nearest(&self, at: usize, rows: usize) -> Vec<(usize, f64)> {
        let own = self.row(at);
        let mut others: Vec<(usize, f64)> = (0..self.words.len())
            .filter(|n| *n != at)
            .map(|n| {
                let other = self.row(n);
                let size = (dot(own, own) * dot(other, other)).sqrt();
                (
                    n,
                    if size > 0.0 {
                        dot(own, other) / size
                    } else {
                        0.0
                    },
                )
            })
            .collect();
        // Equally near words in the order of the table.
        others.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        others.truncate(rows);
        others
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, FixedSizeListArray, ListArray, StringArray};

    use super::*;

    #[test]
    fn neighbours_are_by_direction_and_in_order() {
        let rows = [[1.0, 0.0], [0.0, 0.0], [5.0, 0.1], [-1.0, 0.0], [1.0, 1.0]];
        let rows = || rows.map(|row| Some(row.map(Some).to_vec()));
        let fixed = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows(), 2);
        let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(rows());
        for v in [Arc::new(fixed) as ArrayRef, Arc::new(lists) as ArrayRef] {
            let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "pad", "b", "c", "d"]));
            let table = RecordBatch::try_from_iter([("token", words), ("v", v)]).unwrap();
            let vectors = Vectors::of(&table).unwrap();
            let near: Vec<usize> = vectors.nearest(0, 3).into_iter().map(|(n, _)| n).collect();
            assert_eq!(near, [2, 4, 1]);
            let last = vectors.nearest(0, 9)[3];
            assert_eq!((last.0, last.1), (3, -1.0));
            // A slice of a table has an offset.
            let part = table.slice(2, 3);
            let near = Vectors::of(&part).unwrap().nearest(0, 1);
            assert_eq!(near[0].0, 2);
        }
    }
}
