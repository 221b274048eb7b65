//! A matrix to read, and the sizes of the blocks in which products go.

/// Length of a block of the sum.
pub(crate) const KC: usize = 256;
/// Rows of `A` that stay in the second-level cache.
pub(super) const MC: usize = 96;
/// Columns of `B` packed at a time.
pub(super) const NC: usize = 512;
/// Columns in a panel of packed `B`.
pub(super) const PANEL: usize = 16;
/// Rows in a tile of packed `A`.
pub(super) const TILE: usize = 6;

/// A read-only matrix with strides.
#[derive(Clone, Copy)]
pub struct Mat<'a, T> {
    pub(super) data: &'a [T],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// Contiguous rows.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// Rows that start `stride` apart.
    ///
    /// # Panics
    /// If the slice is too short.
    pub fn strided(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        let fits = rows == 0 || cols == 0 || data.len() >= (rows - 1) * stride + cols;
        assert!(
            fits,
            "matrix {rows} x {cols} needs more than {} numbers",
            data.len()
        );
        Mat {
            data,
            rows,
            cols,
            row_stride: stride,
            col_stride: 1,
        }
    }

    /// The transpose, without moving anything.
    pub fn t(self) -> Self {
        Mat {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// What happens to the old contents of `C`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Into {
    /// `C = A B`
    Set,
    /// `C += A B`
    Add,
}
