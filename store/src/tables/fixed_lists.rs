//! Columns of fixed lists of floats, which is what vectors of words are, taken out of pages as they lie.
//!
//! Parquet knows no fixed lists: a reader looks at two levels for each number to find out where a
//! list begins and what is null. A page of ours without nulls says so in a single run; then its
//! numbers are the column's. With anything else this gives up, and the levels are read.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray};
use arrow::buffer::{MutableBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::Result;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// A reader of such columns of one file.
pub struct FixedLists {
    file: SerializedFileReader<Bytes>,
}

impl FixedLists {
    /// Of a whole Parquet file.
    pub fn new(bytes: Bytes) -> Result<FixedLists> {
        Ok(FixedLists {
            file: SerializedFileReader::new(bytes)?,
        })
    }

    /// The column at this place of the table, if it is a fixed list of floats without a null.
    pub fn column(&self, place: usize, field: &Field) -> Result<Option<ArrayRef>> {
        let DataType::FixedSizeList(item, size) = field.data_type() else {
            return Ok(None);
        };
        match item.data_type() {
            DataType::Float32 => self.floats::<Float32Type>(place, item, *size),
            DataType::Float64 => self.floats::<Float64Type>(place, item, *size),
            _ => Ok(None),
        }
    }

    fn floats<T: ArrowPrimitiveType>(
        &self,
        place: usize,
        item: &FieldRef,
        size: i32,
    ) -> Result<Option<ArrayRef>> {
        let metadata = self.file.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let mut leaves = 0..schema.num_columns();
        let leaf = leaves.find(|leaf| schema.get_column_root_idx(*leaf) == place);
        let Some(leaf) = leaf else { return Ok(None) };
        let present = schema.column(leaf).max_def_level();
        let rows = metadata.file_metadata().num_rows() as usize;
        let count = rows * size as usize;
        let width = size_of::<T::Native>();
        let mut numbers = MutableBuffer::with_capacity(count * width);
        for group in 0..metadata.num_row_groups() {
            let group = self.file.get_row_group(group)?;
            let mut pages = group.get_column_page_reader(leaf)?;
            while let Some(page) = pages.get_next_page()? {
                let Page::DataPage {
                    buf,
                    num_values,
                    encoding: Encoding::PLAIN,
                    ..
                } = page
                else {
                    return Ok(None);
                };
                let Some(values) = without_nulls(&buf, num_values as u64, present) else {
                    return Ok(None);
                };
                if values.len() != num_values as usize * width {
                    return Ok(None);
                }
                numbers.extend_from_slice(values);
            }
        }
        if numbers.len() != count * width {
            return Ok(None);
        }
        let numbers = ScalarBuffer::<T::Native>::new(numbers.into(), 0, count);
        let numbers = PrimitiveArray::<T>::new(numbers, None);
        let lists = FixedSizeListArray::try_new(item.clone(), size, Arc::new(numbers), None)?;
        Ok(Some(Arc::new(lists)))
    }
}

/// The numbers of a page of version 1, if none of them is null.
fn without_nulls(page: &[u8], count: u64, present: i16) -> Option<&[u8]> {
    // Where lists begin needs no look: without nulls each has its length.
    let (_, rest) = levels(page)?;
    let (definition, values) = levels(rest)?;
    let (header, level) = varint(definition)?;
    // An even header is a run: the level that follows, repeated.
    let run = header & 1 == 0 && header >> 1 == count;
    (run && level == [present as u8]).then_some(values)
}

/// Levels with their length before them, and what comes after.
fn levels(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// A number of seven bits a byte, the lowest first.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{FixedSizeListBuilder, Float32Builder, Int32Array, RecordBatch};

    /// A table of `rows` lists of three floats beside another column; `null` is left out.
    fn table(rows: usize, null: Option<usize>, of_list: bool) -> RecordBatch {
        let mut lists = FixedSizeListBuilder::new(Float32Builder::new(), 3);
        for row in 0..rows {
            for k in 0..3 {
                let number = (row * 3 + k) as f32 * 0.37 - 5.0;
                let here = null == Some(row) && k == 1 && !of_list;
                lists.values().append_option((!here).then_some(number));
            }
            lists.append(!(of_list && null == Some(row)));
        }
        let ids = Int32Array::from_iter_values(0..rows as i32);
        RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(ids) as ArrayRef, true),
            ("v", Arc::new(lists.finish()) as ArrayRef, true),
        ])
        .unwrap()
    }

    #[test]
    fn pages_without_nulls_are_taken_whole_and_others_left_to_the_levels() {
        // More than a page of a megabyte, and tables whose levels are not long runs.
        for rows in [0, 1, 2, 7, 100, 200_000] {
            for (null, of_list) in [
                (None, false),
                (Some(rows / 2), false),
                (Some(rows / 2), true),
            ] {
                let table = table(rows, null, of_list);
                let bytes = Bytes::from(crate::encode(&table).unwrap());
                let read = crate::decode(bytes.clone()).unwrap();
                assert_eq!(read, crate::canonical(&table).unwrap());
                let fixed = FixedLists::new(bytes).unwrap();
                let column = fixed.column(1, read.schema().field(1)).unwrap();
                let nulls = null.is_some() && rows > 0;
                match column {
                    Some(column) => {
                        assert!(!nulls);
                        assert_eq!(&column, read.column(1));
                    }
                    None => assert!(nulls || rows < 3, "{rows}"),
                }
                assert!(fixed.column(0, read.schema().field(0)).unwrap().is_none());
            }
        }
    }

    #[test]
    fn pages_that_end_early_are_no_pages() {
        for page in [
            &[][..],
            &[1, 0, 0, 0],
            &[0, 0, 0, 0, 9, 0, 0, 0],
            &[255; 12],
        ] {
            assert_eq!(without_nulls(page, 1, 3), None);
        }
        assert_eq!(
            without_nulls(&[0, 0, 0, 0, 2, 0, 0, 0, 2, 3, 7], 1, 3),
            Some(&[7][..])
        );
        assert_eq!(
            without_nulls(&[0, 0, 0, 0, 2, 0, 0, 0, 2, 2, 7], 1, 3),
            None
        );
        assert_eq!(
            without_nulls(&[0, 0, 0, 0, 2, 0, 0, 0, 4, 3, 7], 1, 3),
            None
        );
    }
}
