//! The table `examples` as it is stored: every cell may be missing or of another type.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;

use crate::Failure;

/// The table `examples`, read column by column.
pub struct Examples<'a> {
    table: &'a RecordBatch,
}

impl<'a> Examples<'a> {
    pub fn read(table: &'a RecordBatch) -> Result<Examples<'a>, Failure> {
        let ids = table.column_by_name("id");
        match ids.and_then(|ids| ids.as_string_opt::<i32>()) {
            Some(ids) if ids.null_count() == 0 => Ok(Examples { table }),
            _ => Err(Failure::new(
                "the stored `examples` have no column `id` of texts",
            )),
        }
    }

    pub fn len(&self) -> usize {
        self.table.num_rows()
    }

    pub fn id(&self, n: usize) -> &'a str {
        self.table["id"].as_string::<i32>().value(n)
    }

    pub fn column(&self, name: &str, n: usize) -> Option<&'a ArrayRef> {
        self.table
            .column_by_name(name)
            .filter(|column| column.is_valid(n))
    }

    pub fn maybe_whole(&self, name: &str, n: usize) -> Option<i64> {
        Some(
            self.column(name, n)?
                .as_primitive_opt::<Int64Type>()?
                .value(n),
        )
    }

    pub fn whole(&self, name: &str, n: usize) -> Result<i64, Failure> {
        self.maybe_whole(name, n).ok_or_else(|| {
            Failure::new(format!(
                "the stored `examples` have no whole number `{name}` in row {n}"
            ))
        })
    }

    pub fn flag(&self, name: &str, n: usize) -> Result<bool, Failure> {
        let flags = self
            .column(name, n)
            .and_then(|column| column.as_boolean_opt());
        flags.map(|flags| flags.value(n)).ok_or_else(|| {
            Failure::new(format!(
                "the stored `examples` have no flag `{name}` in row {n}"
            ))
        })
    }

    pub fn list(&self, name: &str, n: usize) -> Option<ArrayRef> {
        Some(self.column(name, n)?.as_list_opt::<i32>()?.value(n))
    }

    pub fn ints(&self, name: &str, n: usize) -> Option<Vec<i32>> {
        let list = self.list(name, n)?;
        Some(list.as_primitive_opt::<Int32Type>()?.values().to_vec())
    }

    pub fn floats(&self, name: &str, n: usize) -> Option<Vec<f32>> {
        let list = self.list(name, n)?;
        Some(list.as_primitive_opt::<Float32Type>()?.values().to_vec())
    }

    pub fn texts(&self, name: &str, n: usize) -> Vec<String> {
        let list = self.list(name, n);
        let texts = list.as_ref().and_then(|list| list.as_string_opt::<i32>());
        let texts = texts.into_iter().flatten();
        texts
            .map(|text| text.unwrap_or_default().to_owned())
            .collect()
    }

    /// A stored row of the same shape as the original.
    pub fn sequence(&self, name: &str, n: usize, like: &Sequence) -> Option<Sequence> {
        let ids = || -> Option<Vec<u32>> {
            let ids = self.ints(name, n)?;
            ids.into_iter().map(|id| u32::try_from(id).ok()).collect()
        };
        Some(match like {
            Sequence::Tokens(_) => Sequence::Tokens(ids()?),
            Sequence::Chars { width, .. } => Sequence::Chars {
                width: *width,
                ids: ids()?,
            },
            Sequence::Vectors { dim, data } => Sequence::Vectors {
                dim: *dim,
                data: self
                    .floats(name, n)
                    .filter(|found| found.len() == data.len())?,
            },
        })
    }
}
