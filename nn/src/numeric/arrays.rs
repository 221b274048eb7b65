//! Between arrays, which public functions take and give, and slices, which kernels take.

use crate::error::{Result, same};
use ndarray::{Array2, ArrayView, ArrayView2, Dimension};
use std::borrow::Cow;

/// The numbers of an array row after row; copied only if they do not lie so.
#[inline]
pub(crate) fn flat<T: Clone, D: Dimension>(view: ArrayView<'_, T, D>) -> Cow<'_, [T]> {
    match view.to_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(view.iter().cloned().collect()),
    }
}

/// The same of an array that must have this many columns.
#[inline]
pub(crate) fn flat_rows<'a, T: Clone>(
    what: &'static str,
    columns: usize,
    view: ArrayView2<'a, T>,
) -> Result<Cow<'a, [T]>> {
    if view.nrows() > 0 {
        same(what, columns, view.ncols())?;
    }
    Ok(flat(view))
}

/// Numbers row after row as an array of this many rows.
#[inline]
pub(crate) fn rows<T>(rows: usize, data: Vec<T>) -> Array2<T> {
    let columns = data.len() / rows.max(1);
    Array2::from_shape_vec((rows, columns), data).expect("whole rows")
}

/// The same as a view.
#[inline]
pub(crate) fn view_rows<T>(columns: usize, data: &[T]) -> ArrayView2<'_, T> {
    let rows = data.len() / columns.max(1);
    ArrayView2::from_shape((rows, columns), data).expect("whole rows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn only_what_lies_otherwise_is_copied() {
        let a = array![[1, 2, 3], [4, 5, 6]];
        assert!(matches!(flat(a.view()), Cow::Borrowed([1, 2, 3, 4, 5, 6])));
        assert_eq!(flat(a.t()), vec![1, 4, 2, 5, 3, 6]);
        assert!(matches!(flat(a.t()), Cow::Owned(_)));
        assert!(flat_rows("x", 2, a.view()).is_err());
        assert_eq!(rows(2, vec![1, 2, 3, 4, 5, 6]), a);
        assert_eq!(view_rows(3, &[1, 2, 3, 4, 5, 6]), a);
    }
}
