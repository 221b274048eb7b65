//! Items as columns: (numbers, items), where they usually are rows.
//!
//! A row of a few units fills no vector, but one unit of many items does. So the steps of a narrow layer are computed
//! on columns, and element-wise kernels see one long row: the first unit of all items, then the second one. There are
//! items beyond the last one, which nobody reads, so that columns are whole vectors; of a single item, row and columns
//! are the same. What is done to a number is the same as in rows, and in the same order: no bit depends on it.

use super::column_map::ColumnMap;

/// The most units of a narrow layer.
const UNITS: usize = 8;

/// Whether the steps of a layer are computed on columns.
pub fn narrow(inputs: usize, units: usize) -> bool {
    units <= UNITS && inputs <= ColumnMap::<f32>::TERMS
}

/// Columns that a step reads and makes, and the states after it as rows.
#[derive(Default)]
pub(super) struct Columns<T> {
    /// Items of the last step, copies included.
    pub items: usize,
    pub x: Vec<T>,
    pub dh: Vec<T>,
    pub dc: Vec<T>,
    pub dx: Vec<T>,
    pub h: Vec<T>,
    pub c: Vec<T>,
}

/// Rows of this many numbers as columns, all of them so many times. Items beyond them are left as they were.
#[inline(always)]
pub(super) fn to_columns<T: Copy + Default>(
    columns: &mut Vec<T>,
    rows: &[T],
    width: usize,
    lanes: usize,
    copies: usize,
) {
    // A layer without a cell state has no rows of it.
    let items = rows.len() / width;
    columns.resize(if items > 0 { width * lanes } else { 0 }, T::default());
    if lanes == 1 {
        columns.copy_from_slice(rows);
        return;
    }
    for (j, column) in columns.chunks_exact_mut(lanes).enumerate() {
        for part in column.chunks_exact_mut(items).take(copies) {
            for (to, row) in part.iter_mut().zip(rows.chunks_exact(width)) {
                *to = row[j];
            }
        }
    }
}

/// The first items of columns as rows.
#[inline(always)]
pub(super) fn from_columns<T: Copy>(rows: &mut [T], columns: &[T], lanes: usize) {
    if columns.is_empty() {
        return;
    }
    let width = columns.len() / lanes;
    for (item, row) in rows.chunks_exact_mut(width).enumerate() {
        for (to, column) in row.iter_mut().zip(columns.chunks_exact(lanes)) {
            *to = column[item];
        }
    }
}
