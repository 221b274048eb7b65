//! How large a column is, by what it says: the same for the same content, whatever null masks,
//! hidden values and slices it is made of.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::DataType;

/// The bytes of a column's values, without those under a null.
pub(crate) fn content_size(column: &ArrayRef) -> usize {
    let rows = column.len();
    match column.data_type() {
        DataType::Null => 0,
        DataType::Boolean => rows.div_ceil(8),
        DataType::Utf8 => spans(column.as_string::<i32>().value_offsets(), column, |span| {
            span
        }),
        DataType::Binary => spans(column.as_binary::<i32>().value_offsets(), column, |span| {
            span
        }),
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let item = item_size(lists.values());
            spans(lists.value_offsets(), column, |span| {
                (span as f64 * item) as usize
            })
        }
        DataType::FixedSizeList(_, _) => content_size(column.as_fixed_size_list().values()),
        DataType::Struct(_) => column.as_struct().columns().iter().map(content_size).sum(),
        DataType::Map(_, _) => {
            let map = column.as_map();
            let pairs = map.entries().columns().iter().map(item_size).sum::<f64>();
            spans(map.value_offsets(), column, |span| {
                (span as f64 * pairs) as usize
            })
        }
        DataType::FixedSizeBinary(size) => rows * *size as usize,
        other => rows * other.primitive_width().unwrap_or(8),
    }
}

/// What an item of a list takes. Exact for numbers; for texts in lists the mean of all that lie
/// there, which is the same for the same content unless something is hidden under a null.
fn item_size(values: &ArrayRef) -> f64 {
    match values.len() {
        0 => 0.0,
        items => content_size(values) as f64 / items as f64,
    }
}

/// The sum over rows that are not null of what lies between two offsets.
fn spans<O: OffsetSizeTrait>(
    offsets: &[O],
    column: &ArrayRef,
    size: impl Fn(usize) -> usize,
) -> usize {
    let span = |pair: &[O]| pair[1].as_usize() - pair[0].as_usize();
    let length = match column.null_count() {
        0 => offsets[offsets.len() - 1].as_usize() - offsets[0].as_usize(),
        _ => (offsets.windows(2).enumerate())
            .filter(|(row, _)| column.is_valid(*row))
            .map(|(_, pair)| span(pair))
            .sum(),
    };
    size(length)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::{Float32Type, Int64Type};

    use super::*;

    #[test]
    fn the_same_content_has_the_same_size_however_it_lies() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("abc"), None, Some("de")]));
        assert_eq!(content_size(&texts), 5);
        assert_eq!(content_size(&texts.slice(2, 1)), 2);
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![Some(3)]),
        ]);
        let lists: ArrayRef = Arc::new(lists);
        assert_eq!(content_size(&lists), 24);
        assert_eq!(content_size(&lists.slice(2, 1)), 8);
        let rows = (0..4).map(|_| Some(vec![Some(0.5); 3]));
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 3);
        assert_eq!(content_size(&(Arc::new(vectors) as ArrayRef)), 48);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        assert_eq!(content_size(&numbers), 8);
    }
}
